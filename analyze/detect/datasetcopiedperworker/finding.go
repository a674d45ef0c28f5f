package datasetcopiedperworker

import (
	"fmt"
	"slices"
	"time"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

func (p *pickled) finding(certainty finding.Certainty) finding.Finding {
	return finding.Finding{
		Certainty: certainty,
		Title:     p.title(),
		Evidence:  slices.Concat(p.counted(), p.started(), p.held()),
		Cost:      p.cost(),
		Fix:       p.fix(),
		Facts:     p,
	}
}

func (p *pickled) title() string {
	w := p.worst
	title := fmt.Sprintf("%s pickles %s into ", p.methods(), words.Bytes(w.bytes/int64(max(w.workers, 1))))
	if w.workers == 1 {
		title += "its worker"
	} else {
		title += "each of " + words.Count(w.workers, "worker")
	}
	switch n := p.times(); {
	case p.once():
		title += ", once"
	case n > 1:
		title += fmt.Sprintf(", in each of %d passes", n)
	}
	if first := p.first(); first > 0 {
		upTo := ""
		if p.times() > 1 {
			upTo = "up to "
		}
		title += fmt.Sprintf(": %s%s until the first batch", upTo, words.Seconds(first.Seconds()))
	}
	return title
}

// first is the longest time to a first batch.
func (p *pickled) first() (most time.Duration) {
	for _, r := range p.rounds {
		most = max(most, r.first)
	}
	return most
}

// times is how often workers were sent something.
func (p *pickled) times() int {
	n := 0
	for _, r := range p.rounds {
		if r.bytes > 0 {
			n++
		}
	}
	return n
}

func (p *pickled) cost() string {
	w := p.worst
	cost := fmt.Sprintf("%s × %s = %s", words.Bytes(w.bytes/int64(max(w.workers, 1))), words.Count(w.workers, "worker"), words.Bytes(w.bytes))
	if w.limit.Bytes > 0 {
		cost += fmt.Sprintf(" (%s of %s)", words.Percent(w.limit.Share()), words.Memory(w.limit.Bytes, w.limit.Group()))
	}
	cost += fmt.Sprintf(" and %s of pickling, one worker after another", words.Seconds(w.pickle.Seconds()))
	if p.once() {
		return cost + ", once: the workers are persistent"
	}
	return cost + ", at the begin of each pass"
}

func (p *pickled) counted() (list []finding.Evidence) {
	for _, s := range p.worst.starts {
		if s.Bytes == 0 || len(list) == 8 {
			continue
		}
		where := fmt.Sprintf("In pass %d", s.Pass.Number)
		if len(p.worst.starts) > 1 {
			where += fmt.Sprintf(" of rank %d", s.Pass.Loader.Rank())
		}
		text := fmt.Sprintf("%s the main process pickled %s bytes for %s, the dataset (%s) among them. That took %s.",
			where, words.Number(s.Bytes), words.Count(s.Workers, "worker"), s.Pass.Loader.First().DatasetClass, words.Seconds(s.Pickle.Seconds()))
		list = append(list, finding.Evidence{Text: text, Refs: s.Refs})
	}
	return list
}

// started compares the time to the first batch with loaders whose workers were
// forked, or with passes that found their workers at work.
func (p *pickled) started() []finding.Evidence {
	var times []string
	for _, r := range p.rounds {
		if r.first > 0 {
			times = append(times, words.Seconds(r.first.Seconds()))
		}
	}
	if len(times) == 0 {
		return nil
	}
	text := "From the begin of the pass to its first batch: " + words.List(times) +
		", in which the workers start Python, import torch and unpickle their copy"
	if forked, ok := p.forked(); ok {
		text += fmt.Sprintf("; the forked workers of loader %d took %s", forked.Pass.Loader.ID, words.Seconds(forked.First.Seconds()))
	}
	return []finding.Evidence{{Text: text + "."}}
}

// forked is the start of another loader's workers, by fork.
func (p *pickled) forked() (memory.Start, bool) {
	for _, l := range p.Timeline.Loaders {
		for _, s := range p.starts.Of(l) {
			if s.Method == "fork" && s.First > 0 {
				return s, true
			}
		}
	}
	return memory.Start{}, false
}

// held is the memory of the workers.
func (p *pickled) held() []finding.Evidence {
	looks := detect.Of(p.Case, memory.LookSource)
	var most int64
	for _, s := range p.worst.starts {
		most = max(most, looks.Private(s.Pass))
	}
	if most == 0 {
		return nil
	}
	text := fmt.Sprintf("A worker had %s of memory to itself", words.Bytes(most))
	if forked, ok := p.forked(); ok {
		if own := looks.Private(forked.Pass); own > 0 {
			text += fmt.Sprintf("; a forked one of loader %d %s", forked.Pass.Loader.ID, words.Bytes(own))
		}
	}
	return []finding.Evidence{{Text: text + "."}}
}

// fix keeps the data out of the pickle. That forked workers copy Python objects
// as they use them is another rule, so fork alone is no cure.
func (p *pickled) fix() string {
	code := fmt.Sprintf(`# %s: send the workers a file name, not the data
import numpy as np
np.save("items.npy", items)  # once: one array per field; Arrow or LMDB files for what is no array

def __init__(self, path):
    self.path, self.items = path, None

def __getitem__(self, i):
    if self.items is None:  # in each worker: pages of the file, which all of them share
        self.items = np.load(self.path, mmap_mode="r")
    item = self.items[i]

# torch.Tensor attributes are shared with spawned workers as well; NumPy arrays, np.memmap and Python objects are copied.`,
		p.First().First().DatasetClass)
	if !p.once() {
		code += "\n\n# " + p.First().At() + ": once instead of in each pass, if nothing about the dataset changes between them\n" +
			"DataLoader(..., persistent_workers=True)"
	}
	return code
}

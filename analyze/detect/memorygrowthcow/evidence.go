package memorygrowthcow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// listed is how many workers are listed one by one.
const listed = 8

// counted is the bytes of each worker, and who counted them.
func (c *copies) counted() (list []finding.Evidence) {
	for _, set := range c.round {
		if len(list) == listed {
			break
		}
		list = append(list, finding.Evidence{Text: c.countedIn(set), Refs: refs(set)})
	}
	return list
}

func (c *copies) countedIn(set *memory.WorkerSet) string {
	text := whereOf(set)
	if rank := set.Loader.Rank(); rank > 0 || len(c.round) > 1 {
		text += fmt.Sprintf("on rank %d ", rank)
	}
	var each []string
	for _, w := range set.Workers[:min(len(set.Workers), listed)] {
		each = append(each, fmt.Sprintf("worker %d %s", w.Number, words.Bytes(w.Copied)))
	}
	if more := len(set.Workers) - listed; more > 0 {
		each = append(each, fmt.Sprintf("and %d more", more))
	}
	when := fmt.Sprintf("in pass %d", set.Passes[0].Number)
	if n := len(set.Passes); n > 1 {
		when = fmt.Sprintf("in passes %d to %d", set.Passes[0].Number, set.Passes[n-1].Number)
	}
	switch numbers := strings.Join(each, ", "); {
	case set.Tier() == memory.Kernel:
		return text + when + " copied: " + numbers + " (the kernel counted the write faults on pages that were shared, in pages of 4 KiB)."
	case set.Certain() > 0:
		return text + when + " got pages that nobody else maps: " + numbers + " (by their own /proc/self/pagemap; new pages are subtracted). " +
			"Only " + words.Bytes(set.Present()) + " were there when they began: what they have beyond that in all are copies."
	default:
		return text + when + " got pages that nobody else maps: " + numbers + " (by their own /proc/self/pagemap; new pages are subtracted). " +
			"Copied pages look like this, and so do pages that the main process has let go of."
	}
}

// whereOf names the containers of which workers copied.
func whereOf(set *memory.WorkerSet) string {
	ranked, by := set.Ranked(), set.ByExtent()
	var what []string
	for _, e := range ranked {
		text := fmt.Sprintf("%s (%s, %s items", e.Path, class(e), words.Number(e.Items))
		if len(ranked) > 1 {
			text += ", " + words.Bytes(by[e.Extent])
		}
		what = append(what, text+")")
	}
	switch len(what) {
	case 0:
		return "Of the memory that a container whose name is lost lies on, "
	case 1:
		return "Of the memory that " + what[0] + " lies on, "
	}
	return "Of the memory that " + words.List(what) + " lie on (where they share pages, these count for each), "
}

func refs(set *memory.WorkerSet) []finding.Ref {
	out := set.ExtentRefs(set.Ranked()...)
	for i, s := range set.Workers {
		if i == listed {
			break
		}
		out = append(out, s.Refs...)
	}
	return out
}

// curve of the worker that copied most, and where it ends.
func (c *copies) curve() []finding.Evidence {
	set := c.round[0]
	most := slices.MaxFunc(set.Workers, func(a, b *memory.WorkerMemory) int { return cmp.Compare(a.Copied, b.Copied) })
	text := ""
	if steps := stepsOf(set, most); len(steps) > 0 {
		text = fmt.Sprintf("Worker %d had copied %s. ", most.Number, words.List(steps))
	}
	plateau := set.Plateau()
	switch main := set.Main(); {
	case c.forecast > 0 && main != nil:
		text += fmt.Sprintf("It was still growing, after about %s of %s items; at most %s are there to be copied by each worker.",
			words.Number(most.Samples), words.Number(main.Items), words.Bytes(plateau))
	case 10*most.Copied >= 9*plateau:
		text += fmt.Sprintf("That is all there is: %s.", words.Bytes(plateau))
	default:
		text += fmt.Sprintf("At most %s are there to be copied by each worker.", words.Bytes(plateau))
	}
	return []finding.Evidence{{Text: text}}
}

// stepsOf what a worker copied: after each of a few passes, or at a few times of
// its one pass.
func stepsOf(set *memory.WorkerSet, w *memory.WorkerMemory) (steps []string) {
	if len(set.Passes) > 1 {
		for _, p := range few(set.Passes) {
			steps = append(steps, fmt.Sprintf("%s after pass %d", words.Bytes(w.At(end(p))), p.Number))
		}
		return steps
	}
	grown, begin := w.Grown(), set.Passes[0].Begin
	if len(grown) < 2 {
		return nil
	}
	for _, p := range few(grown) {
		steps = append(steps, fmt.Sprintf("%s after %s", words.Bytes(p.Copied), words.Seconds(max(0, float64(p.TS-begin)/1e9))))
	}
	return steps
}

// end of a pass: what is counted in it is written down within a second or so.
func end(p *timeline.Pass) int64 {
	const late = 1_500_000_000
	l := p.Loader
	if p.Number+1 < len(l.Passes) {
		return min(p.End+late, max(p.End, l.Passes[p.Number+1].Begin))
	}
	return p.End + 10*late
}

// few of many: the first, the last and one or two between, spread evenly.
func few[T any](all []T) []T {
	const most = 4
	if len(all) <= most {
		return all
	}
	var out []T
	for i := range most {
		out = append(out, all[i*(len(all)-1)/(most-1)])
	}
	return out
}

func (c *copies) why() []finding.Evidence {
	return []finding.Evidence{{Text: "A Python object holds its reference count. To use an object of " + names(c.round[0].Ranked()) +
		" writes it, and the first write to a page after the fork copies the page, for each worker anew. " +
		"Nothing leaks: it ends when each worker has its own copy."}}
}

// written says at which lines the workers write to what they copy.
func (c *copies) written(r memory.Round) []finding.Evidence {
	var processes []*timeline.Process
	for _, w := range r.Workers() {
		if w.Process != nil {
			processes = append(processes, w.Process)
		}
	}
	if text := c.writers.Of(processes).String(); text != "" {
		return []finding.Evidence{{Text: text}}
	}
	return nil
}

// grown is what the workers' memory grew by.
func (c *copies) grown() []finding.Evidence {
	var copied, anon, file int64
	for _, s := range c.round.Workers() {
		if !s.Looked {
			return nil
		}
		copied += s.Copied + s.Others + s.Outside + s.Rest
		anon += max(0, s.NewAnon)
		file += max(0, s.NewFile)
	}
	return []finding.Evidence{{Text: fmt.Sprintf("What the workers' memory grew by: %s copied, %s new anonymous memory, "+
		"%s files and shared memory (the latter two between the first and the last look at smaps_rollup).",
		words.Bytes(copied), words.Bytes(anon), words.Bytes(file))}}
}

// rest is what else they copied.
func (c *copies) rest() []finding.Evidence {
	if c.round[0].Tier() != memory.Kernel {
		return nil
	}
	n := int64(len(c.round.Workers()))
	all, outside := c.others()
	if all == 0 {
		return nil
	}
	text := fmt.Sprintf("Not charged to the dataset: %s per worker of other memory that they inherited", words.Bytes(all/n))
	if all-outside > 0 {
		text += fmt.Sprintf(", of it %s of the objects of other datasets", words.Bytes((all-outside)/n))
	}
	text += ". Modules that were imported before are part of it: the garbage collector writes to their objects."
	return []finding.Evidence{{Text: text}}
}

// limits is how much memory there is, and when it will be used up.
func limits(r memory.Round, l memory.Limit, forecast int64) []finding.Evidence {
	if l.Bytes == 0 {
		return nil
	}
	text := "The smallest limit for this is " + words.Memory(l.Bytes, l.Group())
	if l.Usage >= 0 && l.Asked < r[0].Passes[0].Begin {
		l.Usage = -1 // from before the workers were started
	}
	if l.Usage >= 0 {
		text += fmt.Sprintf("; %s of it were in use", words.Bytes(l.Usage))
	}
	text += "."
	if left, rate := l.Bytes-l.Usage, rate(r); forecast > 0 && l.Usage >= 0 && rate > 0 {
		if forecast-l.Load > left {
			text += fmt.Sprintf(" At %s per second, as observed, the limit is reached %s after the end of this recording.",
				words.Bytes(int64(rate)), words.Seconds(float64(max(0, left))/rate))
		} else {
			text += fmt.Sprintf(" The forecast adds %s to that, which fits.", words.Bytes(forecast-l.Load))
		}
	}
	return []finding.Evidence{{Text: text, Refs: []finding.Ref{l.Ref}}}
}

func rate(r memory.Round) float64 {
	var sum float64
	for _, set := range r {
		sum += set.Rate()
	}
	return sum
}

// parent is what the main process wrote to: not added to anything.
func (c *copies) parent() []finding.Evidence {
	n := c.round[0].Parent
	if n < noteworthy {
		return nil
	}
	return []finding.Evidence{{Text: "The main process itself wrote to " + words.Bytes(n) + " of memory after it had forked; " +
		"to free objects at its end is enough for that. How much of it was copied cannot be told, and it is not part of the numbers above."}}
}

// Package datasetcopiedperworker is the rule dataset-copied-per-worker: workers that are not
// forked get the whole dataset pickled, one after another, and in each pass
// again. docs/rules/dataset-copied-per-worker.md explains it.
package datasetcopiedperworker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "dataset-copied-per-worker",
	Title:   "The dataset is pickled into every worker",
	Sources: []collect.Any{memory.StartSource, memory.LimitSource, memory.LookSource},
	Excuses: []detect.Excuse{{
		Text: "most of this time goes into code of the program's own that pickling calls (__getstate__, __reduce__), or waits in it.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			p := f.Facts.(*pickled)
			return p.worst.limit.Share() >= significantShare || p.long().copying() >= p.long().pickle/2
		},
	}},
	Judge: judge,
}

// What the workers of one pass must be sent to be worth a word: RULES, "small
// datasets (< 1 % of memory and < 1 s)". Time that the program's own __getstate__
// takes, or waits, is not copying: a byte takes perByte at most, which is six
// times what lists of small dictionaries were measured to take.
const (
	significantShare = 0.01        // of the memory limit
	significantTime  = time.Second // of copying, for all workers of a pass
	significantBytes = 4 << 20     // for all of them: less is no dataset, however little memory there is
	perByte          = 100 * time.Nanosecond
)

func judge(c *detect.Case) detect.Verdict {
	p := &pickled{Case: c, starts: detect.Of(c, memory.StartSource)}
	p.weigh(detect.Of(c, memory.LimitSource))
	methods := memory.Methods(c.Loaders)
	switch certainty := p.certainty(); {
	case certainty > finding.Note:
		return detect.Found(p.amount(", in "), p.finding(certainty))
	case len(methods) == 0:
		return detect.NotApplicable("no workers: nothing is pickled")
	case slices.Equal(methods, []string{"fork"}):
		return detect.NotApplicable("forked workers inherit the dataset: nothing is pickled")
	case len(p.rounds) == 0:
		return detect.CannotTell("no worker was seen")
	case p.worst == nil:
		return detect.CannotTell("what was pickled under " + p.methods() + " is not in the trace")
	case certainty == finding.Note:
		return detect.Clean("no more than a note: persistent workers are sent the dataset once").Noting(p.finding(certainty))
	case p.worst.limit.Bytes == 0:
		return detect.CannotTell(words.Bytes(p.worst.bytes) + " were pickled, but how much memory there is is not in the trace")
	}
	if own := p.long(); own != nil && own.copying() < own.pickle/2 {
		return detect.Clean(p.amount(" in ") + ", most of which is no copying: code of the program's own that pickling calls")
	}
	return detect.Clean(p.amount(" in "))
}

// pickled is what the workers of one loader were sent.
type pickled struct {
	*detect.Case
	starts *memory.Starts
	rounds []round
	worst  *round // nil: nothing that is known of
}

// round is the starts that belong together: the n-th of each rank.
type round struct {
	starts  []memory.Start
	bytes   int64
	pickle  time.Duration // of the rank that took longest
	cpu     time.Duration // of it
	copied  int64         // bytes in this time
	first   time.Duration
	workers int
	limit   memory.Limit // Load: bytes; Bytes 0: no limit is known
}

// weigh compares what was pickled with the memory that there is.
func (p *pickled) weigh(limits *memory.Limits) {
	for _, l := range p.Loaders {
		for i, s := range p.starts.Of(l) {
			if i == len(p.rounds) {
				p.rounds = append(p.rounds, round{})
			}
			p.rounds[i].starts = append(p.rounds[i].starts, s)
		}
	}
	for i := range p.rounds {
		r := &p.rounds[i]
		r.weigh(limits)
		if r.bytes > 0 && (p.worst == nil || r.bytes > p.worst.bytes || r.bytes == p.worst.bytes && r.pickle > p.worst.pickle) {
			p.worst = r
		}
	}
}

func (r *round) weigh(limits *memory.Limits) {
	loads := map[*timeline.Loader]int64{}
	for _, s := range r.starts {
		if s.Method == "fork" {
			continue
		}
		loads[s.Pass.Loader] += s.Bytes
		r.bytes += s.Bytes
		if s.Pickle > r.pickle {
			r.pickle, r.cpu, r.copied = s.Pickle, s.CPU, s.Bytes
		}
		r.first = max(r.first, s.First)
		r.workers += s.Workers
	}
	r.limit, _ = limits.Tightest(loads, r.starts[0].Pass.End)
}

// copying is how much of the time of pickling went into copying at most.
func (r *round) copying() time.Duration {
	return min(r.cpu, time.Duration(r.copied)*perByte)
}

// long is the round that was pickled longest, if that is worth a word; or nil.
func (p *pickled) long() *round {
	var longest *round
	for i := range p.rounds {
		if r := &p.rounds[i]; r.pickle >= significantTime && (longest == nil || r.copying() > longest.copying()) {
			longest = r
		}
	}
	return longest
}

// certainty that it is too much; 0: it is not worth a note. Time counts where
// there was something to copy.
func (p *pickled) certainty() finding.Certainty {
	long := p.long()
	switch {
	case p.worst == nil || p.worst.bytes < significantBytes:
		return 0
	case p.worst.limit.Share() >= significantShare:
		return finding.Proven
	case long == nil || long.copying() < significantTime/4:
		return 0
	case p.once(): // persistent workers pay for it once in their life
		return finding.Note
	}
	return finding.Proven
}

// once reports whether the workers stay from pass to pass.
func (p *pickled) once() bool { return p.First().First().Persistent }

// amount of what was pickled in the worst round.
func (p *pickled) amount(in string) string {
	w := p.worst
	return fmt.Sprintf("%s pickled for %s%s%s", words.Bytes(w.bytes), words.Count(w.workers, "worker"), in, words.Seconds(w.pickle.Seconds()))
}

// methods by which the workers were started that are not forked.
func (p *pickled) methods() string {
	return strings.Join(slices.DeleteFunc(memory.Methods(p.Loaders), func(m string) bool { return m == "" || m == "fork" }), " and ")
}

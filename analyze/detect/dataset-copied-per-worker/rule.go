// Package copied is the rule dataset-copied-per-worker: workers that are not
// forked get the whole dataset pickled, one after another, and in each pass
// again. docs/rules/dataset-copied-per-worker.md explains it.
package copied

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	Title:   "The dataset is pickled into every worker",
	Sources: []collect.Any{memory.Source},
	Judge:   detect.Adapt(judge),
}

const id = "dataset-copied-per-worker"

// What the workers of one pass must be sent to be worth a word: RULES, "small
// datasets (< 1 % of memory and < 1 s)".
const (
	significantShare = 0.01        // of the memory limit
	significantTime  = time.Second // of pickling, for all workers of a pass
)

var tables = []string{"process", "loader", "pass", "worker", "batch_next", "limit"}

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	m := collect.Of(e, memory.Source)
	for _, g := range m.Groups(t) {
		p := &pickled{m: m, t: t, group: g}
		p.weigh()
		if p.certainty != 0 {
			findings = append(findings, p.finding())
		}
		checks = append(checks, p.check())
	}
	return findings, checks
}

// pickled is what the workers of one loader were sent.
type pickled struct {
	m     *memory.Memory
	t     *timeline.Timeline
	group *memory.Group

	certainty finding.Certainty
	rounds    []round
	worst     *round
	large     bool // in bytes, not only in time
}

// round is the starts that belong together: the n-th of each rank.
type round struct {
	starts  []memory.Start
	bytes   int64
	pickle  time.Duration // of the rank that took longest
	first   time.Duration
	workers int
	limit   memory.Limit // Load: bytes
	limited bool
}

func (p *pickled) weigh() {
	for _, l := range p.group.Loaders {
		for i, s := range p.m.Starts(l) {
			if i == len(p.rounds) {
				p.rounds = append(p.rounds, round{})
			}
			p.rounds[i].starts = append(p.rounds[i].starts, s)
		}
	}
	for i := range p.rounds {
		r := &p.rounds[i]
		loads := map[*timeline.Loader]int64{}
		for _, s := range r.starts {
			if s.Method == "fork" {
				continue
			}
			loads[s.Pass.Loader] += s.Bytes
			r.bytes += s.Bytes
			r.pickle, r.first = max(r.pickle, s.Pickle), max(r.first, s.First)
			r.workers += s.Workers
		}
		if r.bytes == 0 {
			continue
		}
		r.limit, r.limited = p.m.Tightest(loads, r.starts[0].Pass.End)
		if p.worst == nil || r.bytes > p.worst.bytes || r.bytes == p.worst.bytes && r.pickle > p.worst.pickle {
			p.worst = r
		}
	}
	if p.worst == nil {
		return
	}
	p.large = p.worst.limit.Share() >= significantShare
	long := false
	for _, r := range p.rounds {
		long = long || r.pickle >= significantTime
	}
	switch {
	case p.large, long && !p.once():
		p.certainty = finding.Proven
	case long: // persistent workers pay for it once in their life
		p.certainty = finding.Note
	}
}

// once reports whether the workers stay from pass to pass.
func (p *pickled) once() bool { return p.group.Loaders[0].First().Persistent }

func (p *pickled) check() finding.Check {
	c := finding.Check{Rule: id, Loader: p.group.ID, Status: finding.CannotTell}
	methods := p.methods()
	switch gap := p.gap(); {
	case p.certainty > finding.Note:
		c.Status = finding.Found
		c.Reason = fmt.Sprintf("%s pickled for %s, in %s", words.Bytes(p.worst.bytes), words.Count(p.worst.workers, "worker"), memory.Seconds(p.worst.pickle.Seconds()))
	case gap != "":
		c.Reason = gap
	case p.group.Everywhere(func(workers int32, _ string) bool { return workers == 0 }):
		c.Status, c.Reason = finding.Clean, "no workers: nothing is pickled"
	case p.group.Everywhere(func(workers int32, method string) bool { return workers == 0 || method == "fork" }):
		c.Status, c.Reason = finding.Clean, "forked workers inherit the dataset: nothing is pickled"
	case len(p.rounds) == 0:
		c.Reason = "no worker was seen"
	case p.worst == nil:
		c.Reason = "what was pickled under " + methods + " is not in the trace"
	case p.certainty == finding.Note:
		c.Status, c.Reason = finding.Clean, "no more than a note: persistent workers are sent the dataset once"
	case !p.worst.limited:
		c.Reason = fmt.Sprintf("%s were pickled, but how much memory there is is not in the trace", words.Bytes(p.worst.bytes))
	default:
		c.Status = finding.Clean
		c.Reason = fmt.Sprintf("%s pickled for %s in %s", words.Bytes(p.worst.bytes), words.Count(p.worst.workers, "worker"), memory.Seconds(p.worst.pickle.Seconds()))
	}
	return c
}

func (p *pickled) gap() string {
	var gaps []string
	for _, l := range p.group.Loaders {
		if gap := p.t.Gap(l, tables); gap != "" && !slices.Contains(gaps, gap) {
			gaps = append(gaps, gap)
		}
	}
	return strings.Join(gaps, "; ")
}

// methods by which the workers were started that are not forked.
func (p *pickled) methods() string {
	var all []string
	for _, l := range p.group.Loaders {
		for i := range l.Objects {
			if m := l.Objects[i].StartMethod; m != "" && m != "fork" && !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, " and ")
}

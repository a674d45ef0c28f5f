// Package workerkilled is the rule worker-killed: a worker of a DataLoader died
// although nobody had asked it to stop. docs/rules/worker-killed.md explains it.
package workerkilled

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/ends"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "worker-killed",
	Title:   "A worker died although nobody had asked it to stop",
	Sources: []collect.Any{ends.Source},
	Excuses: excuses,
	Judge:   judge,
}

// outcome is what became of the workers of one loader.
type outcome struct {
	*detect.Case
	ends    *ends.Ends
	workers int
	deaths  []*death // in the order of time
	unknown []string // why it is not known of some workers, for each
}

// death is one worker that nobody had asked to stop.
type death struct {
	ends.End
	doubts []doubt
}

func judge(c *detect.Case) detect.Verdict {
	o := look(c)
	switch {
	case len(o.deaths) > 0:
		return detect.Found(of(len(o.deaths), o.workers)+" died", o.finding())
	case o.workers == 0 && c.First().First().NumWorkers <= 0:
		return detect.NotApplicable("no workers: the main process loads the data")
	case o.workers == 0:
		return detect.CannotTell("the workers are not known")
	case len(o.unknown) > 0:
		slices.Sort(o.unknown)
		return detect.CannotTell(fmt.Sprintf("%s: %s", of(len(o.unknown), o.workers), strings.Join(slices.Compact(o.unknown), "; ")))
	}
	return detect.Clean(words.Count(o.workers, "worker") + ", none died before it was asked to stop")
}

func look(c *detect.Case) *outcome {
	o := &outcome{Case: c, ends: detect.Of(c, ends.Source)}
	for _, l := range c.Loaders {
		for _, w := range l.WorkerProcesses {
			o.workers++
			d, why := o.verdict(w)
			switch {
			case d != nil:
				o.deaths = append(o.deaths, d)
			case why != "":
				o.unknown = append(o.unknown, why)
			}
		}
	}
	slices.SortStableFunc(o.deaths, func(a, b *death) int { return cmp.Compare(a.When(), b.When()) })
	return o
}

// pass is the worker's share of the pass in which it died.
func (d *death) pass() *timeline.WorkerPass {
	if w := d.Worker.At(d.When()); w != nil && d.When() > 0 {
		return w
	}
	return d.Worker.Last()
}

// of is "1 of 4 workers".
func of(n, all int) string {
	if all == 1 {
		return "the only worker"
	}
	return fmt.Sprintf("%d of %d workers", n, all)
}

// Package killed is the rule worker-killed: a worker of a DataLoader died
// although nobody had asked it to stop. docs/rules/worker-killed.md explains it.
package killed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	Title:   "A worker died although nobody had asked it to stop",
	Sources: []collect.Any{timeline.Source},
	Judge:   detect.Adapt(judge),
}

const id = "worker-killed"

// tables are those whose gaps may hide a death.
var tables = []string{"process", "exit", "loader", "pass", "worker", "batch_next", "exception", "signal", "oom"}

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	for _, ranks := range t.ByLoader() {
		o := look(t, ranks)
		checks = append(checks, o.check())
		if len(o.deaths) > 0 {
			findings = append(findings, o.finding())
		}
	}
	return findings, checks
}

// outcome is what became of the workers of one loader.
type outcome struct {
	t       *timeline.Timeline
	loaders timeline.Ranks
	workers int
	deaths  []*death // in the order of time
	unknown []string // why it is not known of some workers, once for each
	gaps    []string
}

// death is one worker that nobody had asked to stop.
type death struct {
	life *timeline.WorkerProcess
	timeline.Death
	known     bool // code or signal
	certainty finding.Certainty
}

func look(t *timeline.Timeline, ranks timeline.Ranks) *outcome {
	o := &outcome{t: t, loaders: ranks}
	for _, l := range ranks {
		for _, life := range l.Lives {
			o.workers++
			d, why := verdict(t, life)
			switch {
			case d != nil:
				o.deaths = append(o.deaths, d)
			case why != "":
				o.unknown = append(o.unknown, why)
			}
		}
		if gap := t.Losses(l, tables); gap != "" && !slices.Contains(o.gaps, gap) {
			o.gaps = append(o.gaps, gap)
		}
	}
	slices.SortStableFunc(o.deaths, func(a, b *death) int { return cmp.Compare(a.when(), b.when()) })
	return o
}

// when is the time of a death, as near as it is known: torch's error comes soon
// after it, the exit code when the workers are shut down.
func (d *death) when() int64 {
	at := d.TsNS
	for _, c := range d.life.Named {
		if !d.Exact && (at == 0 || c.TsNS < at) {
			at = c.TsNS
		}
	}
	return at
}

func (o *outcome) check() finding.Check {
	c := finding.Check{Rule: id, Loader: o.loaders[0].ID, Status: finding.CannotTell}
	sure := slices.ContainsFunc(o.deaths, func(d *death) bool { return d.certainty > finding.Note })
	switch {
	case sure:
		c.Status = finding.Found
		c.Reason = fmt.Sprintf("%s died", of(len(o.deaths), o.workers))
	case len(o.gaps) > 0:
		c.Reason = strings.Join(o.gaps, "; ")
	case o.workers == 0 && o.loaders[0].First().NumWorkers <= 0:
		c.Reason = "no workers: the main process loads the data"
	case o.workers == 0:
		c.Reason = "the workers are not known"
	case len(o.unknown) > 0:
		slices.Sort(o.unknown)
		c.Reason = fmt.Sprintf("%s: %s", of(len(o.unknown), o.workers), strings.Join(slices.Compact(o.unknown), "; "))
	default:
		c.Status = finding.Clean
		c.Reason = fmt.Sprintf("%s, none died before it was asked to stop", words.Count(o.workers, "worker"))
	}
	return c
}

// of is "1 of 4 workers".
func of(n, all int) string {
	if all == 1 {
		return "the only worker"
	}
	return fmt.Sprintf("%d of %d workers", n, all)
}

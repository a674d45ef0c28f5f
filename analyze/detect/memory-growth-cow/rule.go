// Package cow is the rule memory-growth-cow: workers privately copy the main
// process's Python objects because they use them.
// docs/rules/memory-growth-cow.md explains it.
package cow

import (
	"fmt"

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
	Title:   "Workers copy the dataset's Python objects, page by page",
	Sources: []collect.Any{memory.Source},
	Judge:   detect.Adapt(judge),
}

const id = "memory-growth-cow"

const (
	// significant is the share of the memory limit from which on copies are
	// more than a note: RULES, "growth below 5 % of the limit".
	significant = 0.05
	// noteworthy is how much all workers together must copy, beyond the edges of
	// their dataset, for a note.
	noteworthy = 16 << 20
)

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	m := collect.Of(e, memory.Source)
	for _, g := range m.Groups(t) {
		c := &copies{m: m, t: t, group: g}
		c.weigh()
		if c.certainty != 0 {
			findings = append(findings, c.finding())
		}
		if c.unnamed != nil {
			findings = append(findings, c.unnamedFinding())
		}
		checks = append(checks, c.check())
	}
	return findings, checks
}

// copies is what one loader's workers copied, and how much that is.
type copies struct {
	m     *memory.Memory
	t     *timeline.Timeline
	group *memory.Group

	certainty finding.Certainty // of what is known to belong to the dataset; 0: not worth a note
	round     memory.Round      // the workers that it is told of
	limit     memory.Limit      // Load: what they copied
	limited   bool              // a limit is known
	forecast  int64             // what they will have copied; 0: nothing beyond what they have
	projected memory.Limit      // Load: the forecast

	unnamed  memory.Round // copied much that lies on no known container
	nameless memory.Limit
}

// weigh compares what was copied with the memory that there is.
func (c *copies) weigh() {
	if len(c.group.Rounds) == 0 {
		return
	}
	c.round = c.group.Best((*memory.WorkerSet).Beyond)
	if c.round.Sum((*memory.WorkerSet).Beyond) >= noteworthy {
		c.certainty = finding.Note
	}
	for _, try := range []struct {
		certainty finding.Certainty
		number    func(*memory.WorkerSet) int64
	}{
		{finding.Proven, (*memory.WorkerSet).Certain},
		{finding.Likely, (*memory.WorkerSet).Beyond},
		{finding.Likely, beyondForecast},
	} {
		r := c.group.Best(try.number)
		limit, _ := c.m.TightestOf(r, try.number)
		if limit.Share() >= significant && r.Sum((*memory.WorkerSet).Beyond) >= noteworthy {
			c.certainty, c.round = try.certainty, r
			break
		}
	}
	c.limit, c.limited = c.m.TightestOf(c.round, (*memory.WorkerSet).Sum)
	c.limit.Load = c.round.Sum((*memory.WorkerSet).Sum) // of all hosts
	if f := c.round.Sum((*memory.WorkerSet).Forecast); f > c.limit.Load {
		c.forecast = f
		c.projected, _ = c.m.TightestOf(c.round, (*memory.WorkerSet).Forecast)
	}
	c.weighUnnamed()
}

// beyondForecast is the forecast without the edges of the dataset.
func beyondForecast(crew *memory.WorkerSet) int64 {
	return max(0, crew.Forecast()-(crew.Sum()-crew.Beyond()))
}

func (c *copies) weighUnnamed() {
	if c.t.Incomplete(c.group.Loaders[0].Process, "extent") {
		return // it may have had a name
	}
	r := c.group.Best(c.m.Unnamed)
	if limit, ok := c.m.TightestOf(r, c.m.Unnamed); ok && limit.Share() >= significant {
		c.unnamed, c.nameless = r, limit
	}
}

// check is the loader's line of the rule.
func (c *copies) check() finding.Check {
	k := finding.Check{Rule: id, Loader: c.group.ID, Status: finding.CannotTell}
	g := c.group
	switch gap, blind := c.gaps(), c.blind(); {
	case c.certainty > finding.Note:
		k.Status = finding.Found
		k.Reason = fmt.Sprintf("%s of %s copied", words.Bytes(c.limit.Load), memory.Names(c.round[0].Ranked()))
	case c.unnamed != nil:
		k.Status = finding.Found
		k.Reason = fmt.Sprintf("%s of objects copied that could not be named", words.Bytes(c.nameless.Load))
	case gap != "":
		k.Reason = gap
	case g.Everywhere(func(workers int32, _ string) bool { return workers == 0 }):
		k.Status, k.Reason = finding.Clean, "no workers: nothing is copied"
	case g.Everywhere(func(workers int32, method string) bool {
		return workers == 0 || method == "spawn" || method == "forkserver"
	}):
		k.Status = finding.Clean
		k.Reason = "workers inherit nothing under " + g.Loaders[0].First().StartMethod
	case len(g.Rounds) == 0:
		k.Reason = "no worker was seen"
	case blind != "":
		k.Reason = blind
	case !c.limited && c.certainty == finding.Note:
		k.Reason = fmt.Sprintf("%s were copied, but how much memory there is is not in the trace", words.Bytes(c.limit.Load))
	default:
		k.Status, k.Reason = finding.Clean, c.clean()
	}
	return k
}

// Package memorygrowthcow is the rule memory-growth-cow: workers privately copy the main
// process's Python objects because they use them.
// docs/rules/memory-growth-cow.md explains it.
package memorygrowthcow

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/evidence/writers"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "memory-growth-cow",
	Title:   "Workers copy the dataset's Python objects, page by page",
	Sources: []collect.Any{memory.Source, memory.LimitSource, writers.Source},
	Beside:  forked,
	Excuses: excuses,
	Judge:   judge,
}

const (
	// significant is the share of the memory limit from which on copies are
	// more than a note: RULES, "growth below 5 % of the limit".
	significant = 0.05
	// noteworthy is how much all workers together must copy, beyond the edges of
	// their dataset, for a note.
	noteworthy = 16 << 20
)

func judge(k *detect.Case) detect.Verdict {
	rounds := detect.Of(k, memory.Source).Rounds(k.Loaders)
	c := &copies{Case: k, limits: detect.Of(k, memory.LimitSource), rounds: rounds,
		writers: detect.Of(k, writers.Source)}
	var found []finding.Finding
	var much []string
	if len(rounds) > 0 {
		c.weigh()
		c.weighUnnamed()
	}
	if c.certainty > 0 {
		found = append(found, c.finding())
	}
	if c.certainty > finding.Note {
		much = append(much, fmt.Sprintf("%s of %s copied", words.Bytes(c.limit.Load), names(c.round[0].Ranked())))
	}
	if c.unnamed != nil {
		found = append(found, c.unnamedFinding())
		much = append(much, fmt.Sprintf("%s of objects copied that could not be named", words.Bytes(c.nameless.Load)))
	}
	methods := memory.Methods(k.Loaders)
	switch {
	case len(much) > 0:
		return detect.Found(much[0], found...)
	case len(methods) == 0:
		return detect.NotApplicable("no workers: nothing is copied")
	case !memory.Inherits(k.Loaders):
		return detect.NotApplicable("workers inherit nothing under " + strings.Join(methods, " and "))
	case len(rounds) == 0:
		return detect.CannotTell("no worker was seen")
	case c.unreached() != "":
		return detect.CannotTell(c.unreached()).Noting(found...)
	case c.limit.Bytes == 0 && c.certainty == finding.Note:
		return detect.CannotTell(words.Bytes(c.limit.Load) + " were copied, but how much memory there is is not in the trace").Noting(found...)
	}
	return detect.Clean(c.looked()).Noting(found...)
}

// copies is what one loader's workers copied, and how much that is.
type copies struct {
	*detect.Case
	limits *memory.Limits
	rounds []memory.Round

	writers   *writers.Writers
	certainty finding.Certainty // of what is known to belong to the dataset; 0: not worth a note
	round     memory.Round      // the workers that it is told of
	limit     memory.Limit      // Load: what they copied; Bytes 0: no limit is known
	forecast  int64             // what they will have copied; 0: nothing beyond what they have
	projected memory.Limit      // Load: the forecast

	unnamed  memory.Round // copied much that lies on no known container
	nameless memory.Limit
}

// weigh compares what was copied with the memory that there is.
func (c *copies) weigh() {
	c.round = memory.Best(c.rounds, (*memory.WorkerSet).BeyondEdge)
	if c.round.Sum((*memory.WorkerSet).BeyondEdge) >= noteworthy {
		c.certainty = finding.Note
	}
	for _, try := range []struct {
		certainty finding.Certainty
		number    func(*memory.WorkerSet) int64
	}{
		{finding.Proven, (*memory.WorkerSet).Certain},
		{finding.Likely, (*memory.WorkerSet).BeyondEdge},
		{finding.Likely, forecastBeyondEdge},
	} {
		r := memory.Best(c.rounds, try.number)
		limit, _ := r.Tightest(c.limits, try.number)
		if limit.Share() >= significant && r.Sum((*memory.WorkerSet).BeyondEdge) >= noteworthy {
			c.certainty, c.round = try.certainty, r
			break
		}
	}
	c.limit, _ = c.round.Tightest(c.limits, (*memory.WorkerSet).Copied)
	c.limit.Load = c.round.Sum((*memory.WorkerSet).Copied) // of all hosts
	if f := c.round.Sum((*memory.WorkerSet).Forecast); f > c.limit.Load {
		c.forecast = f
		c.projected, _ = c.round.Tightest(c.limits, (*memory.WorkerSet).Forecast)
	}
}

func forecastBeyondEdge(set *memory.WorkerSet) int64 {
	return max(0, set.Forecast()-(set.Copied()-set.BeyondEdge()))
}

// weighUnnamed looks for what was copied of memory that lies on no container.
func (c *copies) weighUnnamed() {
	if c.Incomplete(c.First().Process, "extent") {
		return // it may have had a name
	}
	r := memory.Best(c.rounds, (*memory.WorkerSet).Unnamed)
	if limit, ok := r.Tightest(c.limits, (*memory.WorkerSet).Unnamed); ok && limit.Share() >= significant {
		c.unnamed, c.nameless = r, limit
	}
}

// unreached says that much became private that is nothing we can reach, in
// workers that the kernel did not count for.
func (c *copies) unreached() string {
	for _, round := range c.rounds {
		for _, set := range round {
			if len(c.rounds) > 1 && set.LeftEarly() {
				continue
			}
			var other int64
			for _, w := range set.Workers {
				if w.Tier != memory.Kernel {
					other += w.PrivateGrowth - w.Copied
				}
			}
			if other > memory.UnnamedLeast*int64(len(set.Workers)) && float64(other) > significant*float64(c.limit.Bytes) {
				return words.Bytes(other) + " of what the workers inherited became private by smaps_rollup, " +
					"and it is not the dataset's objects that dptrace can reach; the kernel tier counts what was copied"
			}
		}
	}
	return ""
}

const noContainer = "the dataset holds no container of 1,000 Python objects or more"

// looked says how much was looked at.
func (c *copies) looked() string {
	workers := words.Count(len(c.round.Workers()), "worker")
	_, outside := c.others()
	switch set := c.round[0]; {
	case c.certainty != 0:
		return "no more than a note on " + names(set.Ranked())
	case len(set.Extents) == 0 && set.Tier() == memory.Kernel:
		return fmt.Sprintf("%s; %s copied %s of what else they inherited", noContainer, workers, words.Bytes(outside))
	case len(set.Extents) == 0:
		return noContainer
	}
	return fmt.Sprintf("%s copied %s of the dataset's objects", workers, words.Bytes(c.limit.Load))
}

// others is what the workers copied that is not their dataset's: in all, and of
// that what lies on no known container.
func (c *copies) others() (all, outside int64) {
	for _, w := range c.round.Workers() {
		all += w.Others + w.Outside + w.Rest
		outside += w.Outside + w.Rest
	}
	return all, outside
}

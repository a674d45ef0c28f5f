// Package rngduplicateranks is the rule rng-duplicate-ranks: ranks that see other samples
// augment them with the same random numbers. docs/rules/rng-duplicate-ranks.md
// explains it.
package rngduplicateranks

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/effects"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/contents"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "rng-duplicate-ranks",
	Title:   "Ranks augment other samples with the same random numbers",
	Sources: []collect.Any{draws.Source, contents.Source, batches.Requested},
	Excuses: redraw.Excuses(excuses),
	Judge:   judge,
}

var excuses = []redraw.Excuse{
	{
		Text: "these ranks hold parts of one model (tensor, pipeline or context parallel), or models of their own: " +
			"it was not seen that their gradients are reduced together.",
		Excluded: func(c *detect.Case, _ *effects.Effects, _ *redraw.Hit, p *redraw.Pair) bool {
			a, b := p.First.Worker.Pass.Loader.Process, p.Second.Worker.Pass.Loader.Process
			return c.Relation(a, b) == timeline.DataParallel
		},
	},
	redraw.Untrained, redraw.Salt, redraw.Order,
	{
		Text: "the ranks must agree on what is drawn: one size for the whole step (multi-scale training).",
		Excluded: func(_ *detect.Case, e *effects.Effects, h *redraw.Hit, _ *redraw.Pair) bool {
			return e.PerSample(h.Slot.Key())
		},
	},
}

// comparison of one loader's ranks.
type comparison struct {
	*detect.Case
	streams  *draws.Streams
	requests batches.ByPass[batches.Requests]
	*redraw.Comparison
	// Pairs of draws that agree although nothing is wrong, or not this.
	sameSamples, undecided int
}

func judge(c *detect.Case) detect.Verdict {
	k := &comparison{Case: c, streams: detect.Of(c, draws.Source), requests: detect.Of(c, batches.Requested)}
	k.Comparison = redraw.Compare(c, k.certainty, excuses)
	together := false // two ranks that may be compared
	for _, ranks := range replicas(c.Loaders) {
		if len(ranks) > 1 {
			together = true
			k.compare(ranks)
		}
	}
	hits := k.Hits()
	said := k.status(hits, together)
	for _, alike := range redraw.Apart(hits) {
		said = said.Noting(k.report(alike))
	}
	return said
}

func (c *comparison) status(hits []*redraw.Hit, together bool) detect.Verdict {
	switch {
	case redraw.Best(hits) > finding.Note:
		return detect.Found(c.Reason(hits))
	case distinct(c.Loaders) < 2 && c.othersMissing():
		return detect.CannotTell(fmt.Sprintf("of %d ranks one was recorded", c.First().Process.WorldSize))
	case distinct(c.Loaders) < 2:
		return detect.NotApplicable("one rank")
	case !together:
		return detect.NotApplicable("no two ranks whose gradients are reduced together")
	case c.sameSamples > 0:
		return detect.CannotTell("the ranks got the same samples, which makes equal numbers the lesser trouble (shard-duplicate-ranks)")
	case c.undecided > 0 && len(hits) == 0:
		return detect.CannotTell("ranks draw the same numbers, and the program made process groups or a mesh of its own, " +
			"which may put them into one replica")
	case c.Streams > 0:
		if open := c.Open(c.streams, c.Loaders); open != "" {
			return detect.CannotTell(open)
		}
		return detect.Clean(c.Comparison.Reason(hits))
	}
	return detect.CannotTell(c.Nothing(c.streams, c.Loaders))
}

// compare passes of the same number between ranks.
func (c *comparison) compare(ranks timeline.Ranks) {
	var passes [][]*draws.Draws // by number
	for _, l := range ranks {
		for _, p := range l.Passes {
			for len(passes) <= p.Number {
				passes = append(passes, nil)
			}
			if !p.Abandoned {
				passes[p.Number] = append(passes[p.Number], c.streams.OfPass(p)...)
			}
		}
	}
	for _, drawn := range passes {
		c.Among(drawn, func(d *draws.Draws) any { return d.Worker.Pass.Loader.Rank() })
	}
}

// certainty that it is a bug when two ranks drew the same.
func (c *comparison) certainty(a, b *draws.Draws) finding.Certainty {
	p, q := a.Worker.Pass, b.Worker.Pass
	if p.Loader.Rank() == q.Loader.Rank() || !timeline.Together(p.Loader.Process, q.Loader.Process) {
		return 0
	}
	relation := c.Relation(p.Loader.Process, q.Loader.Process)
	if relation == timeline.Apart {
		return 0 // parts of one replica get the same data, and must
	}
	if relation == timeline.Undecided {
		c.undecided++
		return 0
	}
	samples := c.requests.Of(p).Compare(c.requests.Of(q))
	if samples == batches.Same {
		c.sameSamples++
	}
	switch blind := p.Blind || q.Blind; {
	case samples == batches.Same:
		return finding.Note
	case samples == batches.Unknown && blind:
		return finding.Note // they may be the same
	case redraw.Idle(p) || redraw.Idle(q):
		return finding.Note // an evaluation
	}
	return finding.Proven
}

// othersMissing reports whether the program has ranks that are not in the trace.
func (c *comparison) othersMissing() bool {
	first := c.First().Process
	other := func(p *timeline.Process) bool { return p.Rank >= 0 && p.Rank != first.Rank }
	return first.WorldSize > 1 && !slices.ContainsFunc(c.Processes, other)
}

// distinct counts the ranks that are known to have the loader.
func distinct(loaders timeline.Ranks) int {
	var ranks []int
	for _, l := range loaders {
		if l.Rank() >= 0 && !slices.Contains(ranks, l.Rank()) {
			ranks = append(ranks, l.Rank())
		}
	}
	return len(ranks)
}

// Package rngduplicateepochs is the rule rng-duplicate-epochs: a later pass draws the
// random numbers of an earlier one again. docs/rules/rng-duplicate-epochs.md
// explains it.
package rngduplicateepochs

import (
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/contents"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "rng-duplicate-epochs",
	DP:      "DP1",
	Title:   "A later pass draws the random numbers of an earlier one again",
	Sources: []collect.Any{draws.Source, contents.Source},
	Excuses: redraw.Excuses(excuses),
	Judge:   judge,
}

var excuses = []redraw.Excuse{redraw.Untrained, redraw.Salt, redraw.Order, redraw.BySample}

// judge compares each pass with the earlier ones of its training.
func judge(c *detect.Case) detect.Verdict {
	s := detect.Of(c, draws.Source)
	compared := redraw.Compare(c, certainty, excuses)
	most, longest := 0, 0
	for _, l := range c.Loaders {
		most = max(most, len(l.Passes))
		for _, passes := range trainings(l) {
			longest = max(longest, len(passes))
			var drawn []*draws.Draws
			for _, p := range passes {
				drawn = append(drawn, s.OfPass(p)...)
			}
			compared.Among(drawn, pass)
		}
	}
	hits := compared.Hits()
	said := status(c, s, compared, hits, most, longest)
	for _, alike := range redraw.Apart(hits) {
		said = said.Noting(report(c, s, compared, alike))
	}
	return said
}

// status says what could be compared: most is the passes of one rank, longest
// those of one training.
func status(c *detect.Case, s *draws.Streams, compared *redraw.Comparison, hits []*redraw.Hit, most, longest int) detect.Verdict {
	switch {
	case redraw.Best(hits) > finding.Note:
		return detect.Found(compared.Reason(hits))
	case compared.Streams > 0:
		if open := compared.Open(s, c.Loaders); open != "" {
			return detect.CannotTell(open)
		}
		return detect.Clean(compared.Reason(hits))
	case most < 2:
		return detect.CannotTell("one pass")
	case longest < 2:
		return detect.CannotTell("no two passes of one training that ran to their end")
	case compared.Parties == 1:
		return detect.CannotTell("random numbers were drawn in one pass only")
	}
	return detect.CannotTell(compared.Nothing(s, c.Loaders))
}

func pass(d *draws.Draws) any { return d.Worker.Pass }

// trainings sorts the passes that may be compared: those of one training, or
// evaluations, and none that was broken off.
func trainings(l *timeline.Loader) (sets [][]*timeline.Pass) {
next:
	for _, p := range l.Passes {
		if p.Abandoned {
			continue
		}
		for i, set := range sets {
			for _, q := range set {
				if p.SameTraining(q) || p.Role == timeline.Eval && q.Role == timeline.Eval {
					sets[i] = append(set, p)
					continue next
				}
			}
		}
		sets = append(sets, []*timeline.Pass{p})
	}
	return sets
}

// certainty that it is a bug when two passes drew the same, but for the excuses.
func certainty(a, b *draws.Draws) finding.Certainty {
	p, q := a.Worker.Pass, b.Worker.Pass
	switch {
	case p == q:
		return 0 // rng-duplicate-workers
	case redraw.Idle(p) || redraw.Idle(q):
		return finding.Note // an evaluation with fixed seeds
	}
	return finding.Proven
}

// Package rngduplicateworkers is the rule rng-duplicate-workers: workers of one pass draw
// the same random numbers. docs/rules/rng-duplicate-workers.md explains it.
package rngduplicateworkers

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
	ID:      "rng-duplicate-workers",
	DP:      "DP1",
	Title:   "Workers of one pass draw the same random numbers",
	Sources: []collect.Any{draws.Source, contents.Source},
	Excuses: redraw.Excuses(excuses),
	Judge:   judge,
	Beside:  children,
}

var excuses = []redraw.Excuse{redraw.Untrained, redraw.Salt, redraw.Order, redraw.BySample}

// judge compares the workers of each pass with each other.
func judge(c *detect.Case) detect.Verdict {
	s := detect.Of(c, draws.Source)
	compared := redraw.Compare(c, certainty, excuses)
	for _, pass := range c.Passes() {
		compared.Among(s.OfPass(pass), worker)
	}
	hits, twins := compared.Hits(), twins(c, s)
	said := status(c, s, compared, hits, len(twins) > 0)
	for _, alike := range redraw.Apart(hits) {
		said = said.Noting(report(c, s, compared, alike))
	}
	return said.Noting(twins...)
}

func status(c *detect.Case, s *draws.Streams, compared *redraw.Comparison, hits []*redraw.Hit, twins bool) detect.Verdict {
	workers := workersOf(c.Loaders)
	switch {
	case redraw.Best(hits) > finding.Note:
		return detect.Found(compared.Reason(hits))
	case twins && (workers < 2 || len(hits) == 0 && compared.Streams > 0):
		return detect.Found("no more than a note on generators that agree in each worker")
	case workers == 0:
		return detect.NotApplicable("no workers: the main process loads the data")
	case workers == 1:
		return detect.NotApplicable("one worker")
	case compared.Streams > 0:
		if open := compared.Open(s, c.Loaders); open != "" {
			return detect.CannotTell(open)
		}
		return detect.Clean(compared.Reason(hits))
	case compared.Parties == 1:
		return detect.CannotTell("random numbers were drawn in one worker only")
	}
	return detect.CannotTell(compared.Nothing(s, c.Loaders))
}

// workersOf is the most workers that a DataLoader of the loader was made with.
func workersOf(ranks timeline.Ranks) (most int) {
	for _, l := range ranks {
		for i := range l.Objects {
			most = max(most, int(l.Objects[i].NumWorkers))
		}
	}
	return most
}

func worker(d *draws.Draws) any { return d.Worker }

// certainty that it is a bug when two workers drew the same, but for the excuses.
func certainty(a, b *draws.Draws) finding.Certainty {
	switch {
	case a.Worker == b.Worker:
		return 0 // seeded again in between; not what this rule is about
	case redraw.Idle(a.Worker.Pass):
		return finding.Note // fixed seeds in an evaluation are common and wanted
	}
	return finding.Proven
}

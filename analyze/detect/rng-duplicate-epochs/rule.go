// Package epochs is the rule rng-duplicate-epochs: a later pass draws the
// random numbers of an earlier one again. docs/rules/rng-duplicate-epochs.md
// explains it.
package epochs

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
	"github.com/dptrace/dptrace/analyze/reseed"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	DP:      "DP1",
	Title:   "A later pass draws the random numbers of an earlier one again",
	Sources: []collect.Any{draws.Source},
	Judge:   detect.Adapt(judge),
}

const id = "rng-duplicate-epochs"

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	s := collect.Of(e, draws.Source)
	for _, g := range redraw.Groups(t, s.Draws(t)) {
		j := compare(g)
		checks = append(checks, g.Check(t, s, j))
		if len(j.Hits) > 0 {
			r := &redraw.Report{Rule: id, DP: "DP1", Scope: reseed.Epochs, Timeline: t, Streams: s, Group: g, Hits: j.Hits}
			findings = append(findings, r.Finding(text(g, j.Hits)))
		}
	}
	return findings, checks
}

// compare each pass with the earlier ones of its training.
func compare(g *redraw.Group) redraw.Outcome {
	j := redraw.Outcome{Rule: id}
	var hits redraw.Hits
	compared := map[redraw.Key][]*draws.Draws{}
	passes, longest, drawing := 0, 0, 0
	for _, l := range g.Loaders {
		passes = max(passes, len(l.Passes))
		for _, training := range trainings(l) {
			longest = max(longest, len(training))
			for key, drawn := range redraw.BySlot(g.Draws[l]) {
				var cover, rare draws.IntervalSet
				seen := map[*timeline.Pass]bool{}
				n := 0
				for _, d := range drawn { // by pass
					if !training[d.Worker.Pass] {
						continue
					}
					if !d.Data() {
						hits.Add(rare.Add(d), note)
						continue
					}
					seen[d.Worker.Pass] = true
					n++
					compared[key] = append(compared[key], d)
					hits.Add(cover.Add(d), certainty)
				}
				drawing = max(drawing, len(seen))
				if len(seen) > 1 {
					j.Compared += n
				}
			}
		}
	}
	j.Hits = hits.List(compared)
	switch {
	case passes < 2:
		j.Nothing = "one pass"
	case longest < 2:
		j.Nothing = "no two passes of one training that ran to their end"
	case drawing == 1:
		j.Nothing = "random numbers were drawn in one pass only"
	}
	return j
}

// trainings sorts the passes that may be compared: those of one training, or
// evaluations, and none that was broken off.
func trainings(l *timeline.Loader) []map[*timeline.Pass]bool {
	var sets []map[*timeline.Pass]bool
next:
	for _, p := range l.Passes {
		if p.Abandoned {
			continue
		}
		for _, set := range sets {
			for q := range set {
				if p.SameTraining(q) || p.Role == timeline.Eval && q.Role == timeline.Eval {
					set[p] = true
					continue next
				}
			}
		}
		sets = append(sets, map[*timeline.Pass]bool{p: true})
	}
	return sets
}

// certainty that it is a bug when two passes drew the same.
func certainty(a, b *draws.Draws) finding.Certainty {
	p, q := a.Worker.Pass, b.Worker.Pass
	switch {
	case p == q:
		return 0 // rng-duplicate-workers
	case p.Role == timeline.Eval || q.Role == timeline.Eval:
		return finding.Note // an evaluation with fixed seeds
	case p.Role != timeline.Train && p.Blind || q.Role != timeline.Train && q.Blind:
		return finding.Note // it may be one
	case p.Role != timeline.Train || q.Role != timeline.Train || a.Ordering || b.Ordering:
		return finding.Likely
	}
	return finding.Proven
}

// note: draws in a few fetches only, retries or a cache.
func note(a, b *draws.Draws) finding.Certainty {
	if a.Worker.Pass == b.Worker.Pass || a.Drew == 0 || b.Drew == 0 || a.Reseeded > 0 || b.Reseeded > 0 {
		return 0
	}
	return finding.Note
}

func text(g *redraw.Group, hits []*redraw.Hit) redraw.Text {
	again, all := spread(hits)
	title := fmt.Sprintf("%s draw%s random numbers of an earlier pass again, from %s", words.Upper(words.Ints("pass", again)), verb(len(again)), redraw.Names(hits))
	if ranks := redraw.RanksOf(hits); len(ranks) > 1 {
		title += ", on " + words.Ints("rank", ranks)
	}
	total := redraw.Totals(hits)
	notABug := "every pass is meant to see the very same augmentations"
	if hits[0].Certainty == finding.Likely && hits[0].Pairs[0].First.Ordering {
		notABug += ", or what is drawn decides which samples this IterableDataset yields"
	}
	return redraw.Text{
		Title:     title,
		Cost:      fmt.Sprintf("%d of %d passes repeat numbers of an earlier one: %s", len(again), all, total.Variety()),
		Why:       why(g.Loaders[0], hits),
		NotABugIf: notABug + ".",
	}
}

func verb(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// spread tells which passes repeat something, and how many were compared.
func spread(hits []*redraw.Hit) (again []int, all int) {
	seen := map[int]bool{}
	for _, h := range hits {
		for _, p := range h.Pairs {
			again = append(again, p.Second.Worker.Pass.Number)
		}
		for _, d := range h.All {
			seen[d.Worker.Pass.Number] = true
		}
	}
	slices.Sort(again)
	return slices.Compact(again), len(seen)
}

// why the passes are alike.
func why(l *timeline.Loader, hits []*redraw.Hit) []string {
	p := hits[0].Pairs[0]
	a, b := p.First.Worker, p.Second.Worker
	var out []string
	switch {
	case a.Number < 0:
		out = append(out, fmt.Sprintf("The main process draws them, and before pass %d its generator was put back.", b.Pass.Number))
	case a.Number != b.Number:
		out = append(out, fmt.Sprintf("Another worker, the same stream: worker %d of pass %d got what worker %d of pass %d had, as happens with seed + epoch + worker.", b.Number, b.Pass.Number, a.Number, a.Pass.Number))
	case a.Pass.Seeded && b.Pass.Seeded && a.Pass.BaseSeed == b.Pass.BaseSeed:
		out = append(out, fmt.Sprintf("PyTorch seeded the workers of both passes from the same base seed (%d): its generator was seeded anew in between.", a.Pass.BaseSeed))
	case hits[0].Slot.Role != "global" && a.Process != b.Process:
		out = append(out, "The workers of each pass are new processes, and each gets a copy of this generator from the main process, where it has not moved.")
	}
	if init := l.First().WorkerInit; init != "" && hits[0].Slot.Role == "global" && a.Process != b.Process {
		out = append(out, "PyTorch seeds this generator anew for each pass; after worker_init_fn ("+init+") it was the same as before.")
	}
	return out
}

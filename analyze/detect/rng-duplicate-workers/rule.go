// Package workers is the rule rng-duplicate-workers: workers of one pass draw
// the same random numbers. docs/rules/rng-duplicate-workers.md explains it.
package workers

import (
	"fmt"
	"strings"

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
	Title:   "Workers of one pass draw the same random numbers",
	Sources: []collect.Any{draws.Source},
	Judge:   detect.Adapt(judge),
}

const id = "rng-duplicate-workers"

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	s := collect.Of(e, draws.Source)
	for _, g := range redraw.Groups(t, s.Draws(t)) {
		j := compare(g)
		checks = append(checks, g.Check(t, s, j))
		if len(j.Hits) > 0 {
			r := &redraw.Report{Rule: id, DP: "DP1", Scope: reseed.Workers, Timeline: t, Streams: s, Group: g, Hits: j.Hits}
			findings = append(findings, r.Finding(text(g, j.Hits)))
		}
		findings = append(findings, twins(s, g)...)
	}
	return findings, checks
}

// compare the workers of each pass with each other.
func compare(g *redraw.Group) redraw.Outcome {
	j := redraw.Outcome{Rule: id}
	var hits redraw.Hits
	compared := map[redraw.Key][]*draws.Draws{}
	alone := 0
	most := 0
	for _, l := range g.Loaders {
		for _, pass := range l.Passes {
			most = max(most, len(pass.Workers))
		}
		for _, drawn := range redraw.ByPass(g.Draws[l]) {
			for key, drawn := range redraw.BySlot(drawn) {
				var all, rare draws.IntervalSet
				data := 0
				for _, d := range drawn {
					if !d.Data() {
						hits.Add(rare.Add(d), note)
						continue
					}
					data++
					compared[key] = append(compared[key], d)
					hits.Add(all.Add(d), certainty)
				}
				if data > 1 {
					j.Compared += data
				} else {
					alone += data
				}
			}
		}
	}
	j.Hits = hits.List(compared)
	switch {
	case most < 2 && g.Loaders[0].First().NumWorkers <= 0:
		j.Nothing = "no workers: the main process loads the data"
	case most < 2:
		j.Nothing = "one worker"
	case alone > 0:
		j.Nothing = "random numbers were drawn in one worker only"
	}
	return j
}

// certainty that it is a bug when two workers drew the same.
func certainty(a, b *draws.Draws) finding.Certainty {
	switch {
	case a.Worker == b.Worker:
		return 0 // seeded again in between; not what this rule is about
	case a.Worker.Pass.Role == timeline.Eval:
		return finding.Note // fixed seeds in an evaluation are common and wanted
	case a.Worker.Pass.Role != timeline.Train && a.Worker.Pass.Blind:
		return finding.Note // it may be one
	case a.Ordering:
		return finding.Likely // may decide which samples come, which all workers must agree about
	}
	return finding.Proven
}

// note: draws in a few fetches only, retries or a cache.
func note(a, b *draws.Draws) finding.Certainty {
	if a.Worker == b.Worker || a.Drew == 0 || b.Drew == 0 || a.Reseeded > 0 || b.Reseeded > 0 {
		return 0
	}
	return finding.Note
}

func text(g *redraw.Group, hits []*redraw.Hit) redraw.Text {
	involved, all, passes, allPasses := spread(g, hits)
	names := redraw.Names(hits)
	title := fmt.Sprintf("%s draw the same random numbers from %s", words.Upper(words.Of(involved, all, "worker")), names)
	if allPasses > 1 {
		title += ", in " + words.Of(passes, allPasses, "pass")
	}
	if ranks := redraw.RanksOf(hits); len(ranks) > 1 {
		title += ", on " + words.Ints("rank", ranks)
	}
	total := redraw.Totals(hits)
	p := hits[0].Pairs[0]
	return redraw.Text{
		Title: title,
		Cost: fmt.Sprintf("%d of %d workers drew the same %s numbers in %d of %d passes: %s", involved, all,
			redraw.Outputs(hits[0], p.Words), passes, allPasses, total.Variety()),
		Why:       why(g.Loaders[0], hits),
		NotABugIf: "you want the k-th sample of each worker to be augmented alike" + ordering(hits) + ".",
	}
}

func ordering(hits []*redraw.Hit) string {
	if hits[0].Certainty == finding.Likely {
		return ", or what is drawn decides which samples this IterableDataset yields (a shuffle on which all workers must agree)"
	}
	return ""
}

// spread counts the workers and passes of the hits: of the pass with the most.
func spread(g *redraw.Group, hits []*redraw.Hit) (workers, of, passes, allPasses int) {
	seen := map[*timeline.Pass]map[int]bool{}
	for _, h := range hits {
		for _, p := range h.Pairs {
			pass := p.First.Worker.Pass
			if seen[pass] == nil {
				seen[pass] = map[int]bool{}
			}
			seen[pass][p.First.Worker.Number] = true
			seen[pass][p.Second.Worker.Number] = true
		}
	}
	for pass, numbers := range seen {
		if len(numbers) > workers {
			workers, of = len(numbers), len(pass.Workers)
		}
	}
	numbers := map[int]bool{}
	for pass := range seen {
		numbers[pass.Number] = true
	}
	for _, l := range g.Loaders {
		n := 0
		for _, pass := range l.Passes {
			if pass.Delivered > 0 {
				n++
			}
		}
		allPasses = max(allPasses, n)
	}
	return workers, of, len(numbers), max(allPasses, len(numbers))
}

// why the workers are alike.
func why(l *timeline.Loader, hits []*redraw.Hit) []string {
	objects, globals := false, false
	for _, h := range hits {
		if h.Slot.Role == "global" {
			globals = true
		} else {
			objects = true
		}
	}
	var out []string
	if objects {
		out = append(out, "PyTorch seeds its own generator and the global ones of random and NumPy anew in each worker. It does not seed generator objects: each worker got a copy in one and the same state.")
	}
	if init := l.First().WorkerInit; globals && init != "" {
		out = append(out, "PyTorch seeds this generator differently in each worker; after worker_init_fn ("+init+") it was the same in several.")
	} else if globals && redraw.OldTorch(l.Process.Torch) && strings.Contains(redraw.Names(hits), "np.random") {
		out = append(out, "PyTorch before 1.9 (here "+l.Process.Torch+") does not seed NumPy in its workers: they inherit the state of the main process.")
	}
	return out
}

package rngduplicateepochs

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
	"github.com/dptrace/dptrace/analyze/reseed"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

func report(c *detect.Case, s *draws.Streams, compared *redraw.Comparison, hits []*redraw.Hit) finding.Finding {
	again, all := spread(hits)
	passes := words.Upper(words.Ints("pass", again))
	title := fmt.Sprintf("%s draw%s random numbers of an earlier pass again, from %s", passes, verb(len(again)), redraw.Names(hits))
	if ranks := redraw.RanksOf(hits); len(ranks) > 1 {
		title += ", on " + words.Ints("rank", ranks)
	}
	r := redraw.Report{Scope: reseed.Epochs, Loader: c.First(), Streams: s, Effects: compared.Effects, Hits: hits}
	return r.Finding(redraw.Wording{
		Title: title,
		Cost:  fmt.Sprintf("%d of %d passes repeat numbers of an earlier one: %s", len(again), all, redraw.Variety(hits)),
		Why:   why(c.First(), hits),
	})
}

func verb(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// spread is which passes repeat something, and how many were compared.
func spread(hits []*redraw.Hit) (again []int, all int) {
	seen := map[int]bool{}
	for _, h := range hits {
		for _, p := range h.Pairs {
			again = append(again, p.Second.Worker.Pass.Number)
		}
		for _, d := range h.Compared {
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
	init := l.First().WorkerInit
	switch {
	case a.Number < 0 && p.Second.MadeLater:
		out = append(out, fmt.Sprintf("The main process draws them, from a generator that it made anew in pass %d.", b.Pass.Number))
	case a.Number < 0:
		out = append(out, fmt.Sprintf("The main process draws them, and before pass %d its generator was put back.", b.Pass.Number))
	case a.Number != b.Number:
		out = append(out, fmt.Sprintf("Another worker, the same stream: worker %d of pass %d got what worker %d of pass %d had, "+
			"as happens with seed + epoch + worker.", b.Number, b.Pass.Number, a.Number, a.Pass.Number))
	case a.Pass.Seeded && b.Pass.Seeded && a.Pass.BaseSeed == b.Pass.BaseSeed:
		out = append(out, fmt.Sprintf("PyTorch seeded the workers of both passes from the same base seed (%d): "+
			"its generator was seeded anew in between.", a.Pass.BaseSeed))
	case a.Process == b.Process:
		out = append(out, fmt.Sprintf("The worker is the same process; before pass %d its generator was put back.", b.Pass.Number))
	case hits[0].Slot.Role == "global":
	case p.First.MadeLater || p.Second.MadeLater:
		out = append(out, "The workers of each pass are new processes, and each makes this generator anew from the same seed.")
	case init != "":
		out = append(out, "The workers of each pass are new processes, and after worker_init_fn ("+init+") this generator was in the same state "+
			"in both passes.")
	case l.First().StartMethod != "fork" && hits[0].Slot.Role == "module":
		out = append(out, "The workers of each pass are new processes, and each imports the module that makes this generator, "+
			"with the same seed.")
	default:
		out = append(out, "The workers of each pass are new processes, and each gets a copy of this generator from the main process, "+
			"where it has not moved.")
	}
	if init != "" && hits[0].Slot.Role == "global" && a.Process != b.Process {
		out = append(out, "PyTorch seeds this generator anew for each pass; after worker_init_fn ("+init+") it was the same as before.")
	}
	return out
}

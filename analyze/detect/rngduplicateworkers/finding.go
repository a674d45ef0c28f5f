package rngduplicateworkers

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
	"github.com/dptrace/dptrace/analyze/reseed"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

func report(c *detect.Case, s *draws.Streams, compared *redraw.Comparison, hits []*redraw.Hit) finding.Finding {
	involved, all, passes, allPasses := spread(c, hits)
	title := fmt.Sprintf("%s draw the same random numbers from %s", words.Upper(words.Of(involved, all, "worker")), redraw.Names(hits))
	if allPasses > 1 {
		title += ", in " + words.Of(passes, allPasses, "pass")
	}
	if ranks := redraw.RanksOf(hits); len(ranks) > 1 {
		title += ", on " + words.Ints("rank", ranks)
	}
	r := redraw.Report{Scope: reseed.Workers, Loader: c.First(), Streams: s, Effects: compared.Effects, Hits: hits}
	return r.Finding(redraw.Wording{
		Title: title,
		Cost: fmt.Sprintf("%d of %d workers drew the same numbers in %d of %d passes (%s): %s", involved, all,
			passes, allPasses, redraw.FirstTime(hits[0]), redraw.Variety(hits)),
		Why: why(c.First(), hits),
	})
}

// spread counts the workers and passes of the hits: of the pass with the most.
func spread(c *detect.Case, hits []*redraw.Hit) (workers, of, passes, allPasses int) {
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
	numbers := map[int]bool{}
	for pass, involved := range seen {
		numbers[pass.Number] = true
		if len(involved) > workers {
			workers, of = len(involved), len(pass.Workers)
		}
	}
	for _, l := range c.Loaders {
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
	var objects *redraw.Hit
	globals := false
	for _, h := range hits {
		if h.Slot.Role == "global" {
			globals = true
		} else if objects == nil {
			objects = h
		}
	}
	var out []string
	if objects != nil {
		out = append(out, "PyTorch seeds its own generator and the global ones of random and NumPy anew in each worker. "+
			"It does not seed generator objects: "+origin(l, objects)+".")
	}
	if init := l.First().WorkerInit; globals && init != "" {
		out = append(out, "PyTorch seeds this generator differently in each worker; after worker_init_fn ("+init+") it was the same in several.")
	} else if globals && oldTorch(l.Process.Torch) && strings.Contains(redraw.Names(hits), "np.random") {
		out = append(out, "PyTorch before 1.9 (here "+l.Process.Torch+") does not seed NumPy in its workers: "+
			"they inherit the state of the main process.")
	}
	return out
}

// origin of the one state that a generator has in all workers.
func origin(l *timeline.Loader, h *redraw.Hit) string {
	first := l.First()
	switch {
	case h.Pairs[0].First.MadeLater:
		return "each worker made this one itself, and from the same seed"
	case first.WorkerInit != "":
		return "after worker_init_fn (" + first.WorkerInit + ") each worker had this one in one and the same state"
	case first.StartMethod != "fork" && h.Slot.Role == "module":
		return "each worker imported the module that makes this one, with the same seed"
	}
	return "each worker got a copy in one and the same state"
}

// oldTorch reports whether this PyTorch does not seed NumPy in workers: before 1.9.
func oldTorch(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major < 1 || major == 1 && minor < 9
}

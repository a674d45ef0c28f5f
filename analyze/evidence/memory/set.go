package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// WorkerSet is the workers that were started together, and the passes they served:
// one pass, or all if they are persistent.
type WorkerSet struct {
	Loader     *timeline.Loader
	Passes     []*timeline.Pass
	Workers    []*WorkerMemory
	Extents    []traces.Extent // that they inherited
	Finished   bool            // they are gone after their pass, and served it to the end
	Persistent bool
	Parent     int64 // bytes that the main process wrote to after it had forked; what of it was copied cannot be told
	page       int64
}

// sets of a loader's workers, in their order.
func (m *Memory) sets(l *timeline.Loader) []*WorkerSet {
	var sets []*WorkerSet
	for _, pass := range l.Passes {
		workers := slices.DeleteFunc(slices.Clone(pass.Workers), func(w *timeline.WorkerPass) bool {
			return w.Process == nil || w.Process == l.Process
		})
		if len(workers) == 0 {
			continue
		}
		if n := len(sets); n == 0 || sets[n-1].Workers[0].Process != workers[0].Process {
			sets = append(sets, m.started(pass, workers))
		}
		sets[len(sets)-1].serve(pass, workers)
	}
	for _, set := range sets {
		pass := set.Passes[0] // broken off, but not earlier than the others: the program's way of counting epochs
		set.Finished = !set.Persistent && (pass.Exhausted || len(sets) > 1 && !pass.Abandoned)
		for _, w := range set.Workers {
			m.measure(set, w)
			if _, ok := m.workers[w.Process]; !ok {
				m.workers[w.Process] = Worker{w, set}
			}
		}
	}
	return sets
}

// started is the workers that a pass started.
func (m *Memory) started(pass *timeline.Pass, workers []*timeline.WorkerPass) *WorkerSet {
	main := pass.Loader.Process
	set := &WorkerSet{Loader: pass.Loader, Extents: m.have(main).inherited(pass), Persistent: pass.DataLoader().Persistent,
		page: m.PageSize(main.Part)}
	for _, w := range workers {
		set.Workers = append(set.Workers, &WorkerMemory{Number: w.Number, Process: w.Process})
	}
	for _, r := range m.have(main).cow {
		if r.Mapping == forkedItself {
			set.Parent = max(set.Parent, written(&r)*set.page)
		}
	}
	return set
}

// serve notes that the workers served a pass.
func (s *WorkerSet) serve(pass *timeline.Pass, workers []*timeline.WorkerPass) {
	s.Passes = append(s.Passes, pass)
	for _, served := range workers {
		for _, w := range s.Workers {
			if w.Process == served.Process {
				w.Samples += int64(served.Windows) * int64(max(pass.DataLoader().BatchSize, 1))
			}
		}
	}
}

// edge is what is not held against a dataset although it lies in the blocks of
// its objects, for each worker: blocks of 2 MiB have other things on them too,
// and the first objects of a container fill gaps in the heap that import torch
// has left, which the garbage collector writes to on its own. Workers that never
// touched their containers of 1,000 to 20,000 items copied up to 3.6 MB of these
// blocks (21 programs that call gc.collect(), torch 1.13 and 2.15). The edge
// decides what is found; it is not taken off the numbers that are shown.
const edge = 2 * BlockBytes

// Copied is what the workers copied of their dataset's objects.
func (s *WorkerSet) Copied() int64 {
	var n int64
	for _, w := range s.Workers {
		n += w.Copied
	}
	return n
}

// BeyondEdge is what of it is beyond the edges of the dataset.
func (s *WorkerSet) BeyondEdge() int64 {
	var n int64
	for _, w := range s.Workers {
		n += max(0, w.Copied-edge)
	}
	return n
}

// Certain is how much of it is copies beyond doubt. The kernel counts copies.
// By pagemap a page is known to be nobody else's, not why: the main process may
// have let go of it. But as long as several workers have more to themselves in
// all than there was in the first place, the difference is copies.
func (s *WorkerSet) Certain() int64 {
	var counted, seen, private, present int64
	for _, w := range s.Workers {
		switch w.Tier {
		case Kernel:
			counted += max(0, w.Copied-edge)
		case Hook:
			seen += max(0, w.Copied-edge)
			private += w.Copied
			present = max(present, w.Present)
		}
	}
	return counted + max(0, min(seen, private-present))
}

// Tier that all workers were seen by: the weakest.
func (s *WorkerSet) Tier() Tier {
	tier := Kernel
	for _, w := range s.Workers {
		tier = min(tier, w.Tier)
	}
	return tier
}

// Present is how many bytes of the extents were in memory; where no worker could
// tell, all that the extents span.
func (s *WorkerSet) Present() int64 {
	var n int64
	for _, w := range s.Workers {
		n = max(n, w.Present)
	}
	if n == 0 {
		n = BlocksOf(s.Extents...).bytes()
	}
	return n
}

// Plateau is how much one worker can copy at most because it uses the objects.
func (s *WorkerSet) Plateau() int64 { return reachable(s.Extents, s.Present(), s.page) }

// stillGrowing: the last quarter of a worker's time brought more than this share
// of all that it copied.
const stillGrowing = 0.05

// Growing reports whether the workers were still copying when they were last seen.
// Workers that served their one pass to its end are gone: the next ones begin
// anew and come as far.
func (s *WorkerSet) Growing() bool {
	if s.Finished {
		return false
	}
	var late, all int64
	for _, w := range s.Workers {
		if n := len(w.Curve); n > 1 {
			from, to := w.Curve[0].TS, w.Curve[n-1].TS
			late += w.Copied - w.At(from+(to-from)/4*3)
			all += w.Copied
		}
	}
	return all > 0 && float64(late) > stillGrowing*float64(all)
}

// Forecast is what the workers will have copied in all when they have reached
// their plateau, or the end of their pass; what they have copied if they do not
// grow any more.
//
// A page is copied at the first use of one of its objects. If k of N items have
// been used, and a page holds m of them, 1-exp(-mk/N) of the pages that will
// ever be copied have been.
func (s *WorkerSet) Forecast() int64 {
	sum := s.Copied()
	main, plateau := s.Main(), s.Plateau()
	if !s.Growing() || main == nil || main.Items <= 0 || plateau <= 0 {
		return sum
	}
	items := float64(main.Items)
	perPage := items / max(1, float64(plateau)/float64(s.page))
	used := func(k float64) float64 { return 1 - math.Exp(-perPage*min(k, items)/items) }
	last := 1.0
	if !s.Persistent && !s.Loader.Iterable() {
		last = used(items / float64(len(s.Workers)))
	}
	var total float64
	for _, w := range s.Workers {
		final := float64(plateau)
		if now := used(float64(w.Samples)); now > 0 {
			final = min(final, float64(w.Copied)/now*last)
		}
		total += max(final, float64(w.Copied))
	}
	return max(sum, int64(total))
}

// Main is the container of which most was copied.
func (s *WorkerSet) Main() *traces.Extent {
	by := s.ByExtent()
	var best *traces.Extent
	for i := range s.Extents {
		e := &s.Extents[i]
		if best == nil || by[e.Extent] > by[best.Extent] {
			best = e
		}
	}
	return best
}

// ByExtent is what was copied of each extent, of all workers.
func (s *WorkerSet) ByExtent() map[uint32]int64 {
	by := map[uint32]int64{}
	for _, w := range s.Workers {
		for e, n := range w.ByExtent {
			by[e] += n
		}
	}
	return by
}

// Ranked is the containers of which anything was copied, the most copied first.
func (s *WorkerSet) Ranked() []traces.Extent {
	by := s.ByExtent()
	out := slices.DeleteFunc(slices.Clone(s.Extents), func(e traces.Extent) bool { return by[e.Extent] == 0 })
	slices.SortStableFunc(out, func(a, b traces.Extent) int { return cmp.Compare(by[b.Extent], by[a.Extent]) })
	return out
}

// Rate is how fast the workers copied in the second half of their time together,
// in bytes per second; 0 unknown.
func (s *WorkerSet) Rate() float64 {
	from, to := s.span()
	if from >= to {
		return 0
	}
	half := from + (to-from)/2
	var grown int64
	for _, w := range s.Workers {
		grown += w.At(to) - w.At(half)
	}
	return float64(grown) / (float64(to-half) / 1e9)
}

// span is the time from the first to the last point of the curves.
func (s *WorkerSet) span() (from, to int64) {
	for _, w := range s.Workers {
		for _, p := range w.Curve {
			if from == 0 || p.TS < from {
				from = p.TS
			}
			to = max(to, p.TS)
		}
	}
	return from, to
}

// ExtentRefs are the rows of some containers.
func (s *WorkerSet) ExtentRefs(extents ...traces.Extent) []finding.Ref {
	var refs []finding.Ref
	for _, e := range extents {
		refs = append(refs, ref(s.Loader.Process.Part, "extent", e.Seq))
	}
	return refs
}

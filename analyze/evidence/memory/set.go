package memory

import (
	"math"
	"slices"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

// edge is what is not held against a dataset although it lies in the blocks of
// its objects, for each worker: blocks of 2 MiB have other things on them too,
// and the first objects of a container fill gaps in the heap that import torch
// has left, which the garbage collector writes to on its own. Workers that never
// touched their containers of 1,000 to 20,000 items copied up to 3.6 MB of these
// blocks (21 programs that call gc.collect(), torch 1.13 and 2.15). The edge
// decides what is found; it is not taken off the numbers that are shown.
const edge = 2 * BlockBytes

// Sum of what the workers of a crew copied of their dataset's objects.
func (c *WorkerSet) Sum() int64 {
	var n int64
	for _, s := range c.Shares {
		n += s.Charged
	}
	return n
}

// Tier that all workers were seen by: the weakest.
func (c *WorkerSet) Tier() Tier {
	tier := Kernel
	for _, s := range c.Shares {
		tier = min(tier, s.Tier)
	}
	return tier
}

// Seen is how many of the workers anybody looked into.
func (c *WorkerSet) Seen() int {
	n := 0
	for _, s := range c.Shares {
		if s.Tier != Unseen {
			n++
		}
	}
	return n
}

// Beyond is what the workers copied beyond the edges of their dataset.
func (c *WorkerSet) Beyond() int64 {
	var n int64
	for _, s := range c.Shares {
		n += max(0, s.Charged-edge)
	}
	return n
}

// Certain is how much of it is copies beyond doubt. The kernel counts copies.
// By pagemap a page is known to be nobody else's, not why: the main process may
// have let go of it. But as long as several workers have more to themselves in
// all than there was in the first place, the difference is copies.
func (c *WorkerSet) Certain() int64 {
	var counted, seen, private, present int64
	for _, s := range c.Shares {
		switch s.Tier {
		case Kernel:
			counted += max(0, s.Charged-edge)
		case Hook:
			seen += max(0, s.Charged-edge)
			private += s.Charged
			present = max(present, s.Present)
		}
	}
	return counted + max(0, min(seen, private-present))
}

// Present is how many bytes of the extents were in memory; where no worker could
// tell, all that the extents span.
func (c *WorkerSet) Present() int64 {
	var n int64
	for _, s := range c.Shares {
		n = max(n, s.Present)
	}
	if n == 0 {
		n = runsOf(c.Extents...).bytes()
	}
	return n
}

// Plateau is how much one worker can copy at most because it uses the objects.
func (c *WorkerSet) Plateau() int64 { return reachable(c.Extents, c.Present(), c.page) }

// stillGrowing: the last quarter of a worker's time brought more than this share
// of all that it copied.
const stillGrowing = 0.05

// Growing reports whether the workers were still copying when they were last seen.
// Workers that served their one pass to its end are gone: the next ones begin
// anew and come as far.
func (c *WorkerSet) Growing() bool {
	if c.Whole {
		return false
	}
	var late, all int64
	for _, s := range c.Shares {
		if n := len(s.Curve); n > 1 {
			from, to := s.Curve[0].TS, s.Curve[n-1].TS
			late += s.Charged - s.At(from+(to-from)/4*3)
			all += s.Charged
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
func (c *WorkerSet) Forecast() int64 {
	sum := c.Sum()
	main, plateau := c.Main(), c.Plateau()
	if !c.Growing() || main == nil || main.Items <= 0 || plateau <= 0 {
		return sum
	}
	items := float64(main.Items)
	perPage := items / max(1, float64(plateau)/float64(c.page))
	used := func(k float64) float64 { return 1 - math.Exp(-perPage*min(k, items)/items) }
	last := 1.0
	if !c.Persist && !c.Loader.Iterable() {
		last = used(items / float64(len(c.Shares)))
	}
	var total float64
	for _, s := range c.Shares {
		final := float64(plateau)
		if now := used(float64(s.Samples)); now > 0 {
			final = min(final, float64(s.Charged)/now*last)
		}
		total += max(final, float64(s.Charged))
	}
	return max(sum, int64(total))
}

// Main is the container of which most was copied.
func (c *WorkerSet) Main() *traces.Extent {
	by := c.By()
	var best *traces.Extent
	for i := range c.Extents {
		e := &c.Extents[i]
		if best == nil || by[e.Extent] > by[best.Extent] {
			best = e
		}
	}
	return best
}

// By is what was copied of each extent, of all workers.
func (c *WorkerSet) By() map[uint32]int64 {
	by := map[uint32]int64{}
	for _, s := range c.Shares {
		for e, n := range s.By {
			by[e] += n
		}
	}
	return by
}

// Ranked is the containers of which anything was copied, the most copied first.
func (c *WorkerSet) Ranked() []traces.Extent {
	by := c.By()
	out := slices.DeleteFunc(slices.Clone(c.Extents), func(e traces.Extent) bool { return by[e.Extent] == 0 })
	slices.SortStableFunc(out, func(a, b traces.Extent) int {
		switch {
		case by[a.Extent] > by[b.Extent]:
			return -1
		case by[a.Extent] < by[b.Extent]:
			return 1
		}
		return 0
	})
	return out
}

// Rate is how fast the workers copied in the second half of their time together,
// in bytes per second; 0 unknown.
func (c *WorkerSet) Rate() float64 {
	from, to := c.span()
	if from >= to {
		return 0
	}
	half := from + (to-from)/2
	var grown int64
	for _, s := range c.Shares {
		grown += s.At(to) - s.At(half)
	}
	return float64(grown) / (float64(to-half) / 1e9)
}

// span is the time from the first to the last point of the curves.
func (c *WorkerSet) span() (from, to int64) {
	for _, s := range c.Shares {
		for _, p := range s.Curve {
			if from == 0 || p.TS < from {
				from = p.TS
			}
			to = max(to, p.TS)
		}
	}
	return
}

// ExtentRefs are the rows of the containers.
func (c *WorkerSet) ExtentRefs(extents ...traces.Extent) []finding.Ref {
	var refs []finding.Ref
	for _, e := range extents {
		refs = append(refs, finding.Ref{Part: c.Loader.Process.Part.Name, Table: "extent", Seq: e.Seq})
	}
	return refs
}

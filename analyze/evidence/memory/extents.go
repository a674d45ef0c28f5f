package memory

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// BlockBytes is the size of the blocks that addresses are folded into.
const BlockBytes = 2 << 20

// runs is ranges of blocks, sorted, without overlap.
type runs []span

type span struct{ from, to int64 } // blocks, to is excluded

func runsOf(extents ...traces.Extent) runs {
	var all runs
	for _, e := range extents {
		for i, from := range e.Starts {
			if i < len(e.Counts) && e.Counts[i] > 0 {
				all = append(all, span{from, from + e.Counts[i]})
			}
		}
	}
	slices.SortFunc(all, func(a, b span) int { return int(a.from - b.from) })
	var out runs
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
		} else {
			out = append(out, s)
		}
	}
	return out
}

func (r runs) has(block int64) bool {
	i, found := slices.BinarySearchFunc(r, block, func(s span, b int64) int {
		switch {
		case s.to <= b:
			return -1
		case s.from > b:
			return 1
		}
		return 0
	})
	return found && i < len(r)
}

func (r runs) bytes() int64 {
	var n int64
	for _, s := range r {
		n += (s.to - s.from) * BlockBytes
	}
	return n
}

// extentsFor finds the containers that the workers inherited which a pass
// started: those of its loader, the newest of each path.
func (p *part) extentsFor(pass *timeline.Pass) []traces.Extent {
	var out []traces.Extent
	for _, e := range p.extents[pass.Loader.Process.Proc] {
		if e.Loader != pass.Object || e.Pass > pass.Recorded {
			continue
		}
		if i := slices.IndexFunc(out, func(o traces.Extent) bool { return o.Path == e.Path }); i >= 0 {
			out[i] = e
		} else {
			out = append(out, e)
		}
	}
	return out
}

// perItem is how many objects belong to an item of the container, itself
// included, as far as the hook looked: at every n-th item. At least 1.
func perItem(e traces.Extent) float64 {
	if e.Items <= 0 {
		return 1
	}
	every := max(e.Items/sampledItems, 1)
	looked := (e.Items + every - 1) / every
	return max(1, float64(e.Sampled)/float64(looked))
}

// sampledItems is about how many items of a container the hook looks at
// (MAX_SAMPLED in extents.py).
const sampledItems = 4096

// manyHeld is from how many objects per item on the hook may have seen only
// some of them, for it looks at 65,536 objects of a container at most.
const manyHeld = 8

// Nested reports whether the container's items hold objects of their own: dicts,
// tuples, instances.
func Nested(e traces.Extent) bool { return perItem(e) > 1.5 }

// reachable is how many bytes of an extent can become private at most because
// its objects are used: the pages that the objects begin on, as the hook
// estimates them, or else a page for each object; and no more than is there.
// Large items (encoded images) are touched at their first page only.
func reachable(extents []traces.Extent, present int64, page int64) int64 {
	if len(extents) == 0 { // their rows are lost
		return present
	}
	var pages float64
	told := int64(0)
	for _, e := range extents {
		if e.Plateau == 0 { // of an earlier version, or its objects hold too many
			told = 0
			break
		}
		told += e.Plateau
	}
	if told > 0 {
		return min(told, present)
	}
	for _, e := range extents {
		if perItem(e) > manyHeld {
			return present
		}
		pages += float64(e.Items) * perItem(e)
	}
	return int64(min(pages*float64(page), float64(present)))
}

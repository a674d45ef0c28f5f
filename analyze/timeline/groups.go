package timeline

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/dptrace/dptrace/traces"
)

// Group is a set of ranks. Ranks that count from 0 without a hole are kept as
// their number: what a trace says of the world's size costs nothing.
type Group struct {
	below int64   // 0 up to here are in it
	rest  []int64 // and these, sorted: negative, or above below
}

// has reports whether a rank is in it.
func (g *Group) has(rank int64) bool {
	if 0 <= rank && rank < g.below {
		return true
	}
	_, ok := slices.BinarySearch(g.rest, rank)
	return ok
}

// covers reports whether all ranks of another group are in it.
func (g *Group) covers(o *Group) bool {
	return o.below <= g.below && !slices.ContainsFunc(o.rest, func(r int64) bool { return !g.has(r) })
}

// one is a rank of it.
func (g *Group) one() int64 {
	if g.below == 0 && len(g.rest) > 0 {
		return g.rest[0]
	}
	return 0
}

// newGroup of some ranks, in any order; below is how many there are from 0 besides.
func newGroup(ranks []int64, below int64) *Group {
	g := &Group{below: max(0, below)}
	sorted := slices.Compact(slices.Sorted(slices.Values(ranks)))
	from := sort.Search(len(sorted), func(i int) bool { return sorted[i] >= 0 })
	to := from
	for to < len(sorted) && sorted[to] <= g.below {
		if sorted[to] == g.below {
			g.below++
		}
		to++
	}
	g.rest = slices.Delete(sorted, from, to)
	return g
}

// groupSet gives equal groups of ranks one *Group.
type groupSet map[string]*Group

func (s groupSet) of(g *Group) *Group {
	key := binary.AppendVarint(nil, g.below)
	for _, r := range g.rest {
		key = binary.AppendVarint(key, r)
	}
	if known := s[string(key)]; known != nil {
		return known
	}
	s[string(key)] = g
	return g
}

// reduced is the group of a row of ranks whose gradients are reduced together:
// where it lists none, the default group, everybody.
func (s groupSet) reduced(d *traces.Dist, world int32) *Group {
	if len(d.Ranks) == 0 {
		return s.of(newGroup(nil, int64(world)))
	}
	return s.of(newGroup(d.Ranks, 0))
}

// unite joins groups that have a rank in common, and finds the united group of a rank.
func unite(groups []*Group) func(rank int64) *Group {
	below := int64(0) // those with a number of ranks all have rank 0
	up := map[int64]int64{}
	for _, g := range groups {
		below = max(below, g.below)
	}
	var find func(int64) int64
	find = func(r int64) int64 {
		if 0 <= r && r < below {
			r = 0
		}
		above, ok := up[r]
		if !ok || above == r {
			return r
		}
		up[r] = find(above)
		return up[r]
	}
	for _, g := range groups {
		first := g.one()
		for _, r := range g.rest {
			up[find(r)] = find(first)
		}
	}
	lists := map[int64][]int64{}
	for _, g := range groups {
		top := find(g.one())
		lists[top] = append(lists[top], g.rest...)
	}
	united := map[int64]*Group{}
	for top, list := range lists {
		from := int64(0)
		if below > 0 && find(0) == top {
			from = below
		}
		united[top] = newGroup(list, from)
	}
	return func(rank int64) *Group { return united[find(rank)] }
}

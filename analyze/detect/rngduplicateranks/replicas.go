package rngduplicateranks

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// replicas sorts a loader's ranks into those that may be compared: alive
// together, and not parts of one replica of a model.
func replicas(loaders timeline.Ranks) []timeline.Ranks {
	byRank := map[int]timeline.Ranks{}
	grouped := true
	for _, l := range loaders {
		if l.Rank() >= 0 {
			byRank[l.Rank()] = append(byRank[l.Rank()], l)
			grouped = grouped && l.Process.Peers != nil
		}
	}
	type set struct {
		start int             // how often the rank was started before
		peers *timeline.Group // of the rank
	}
	sets := map[set]timeline.Ranks{}
	for _, starts := range byRank {
		slices.SortFunc(starts, func(a, b *timeline.Loader) int { return cmp.Compare(a.Process.Begin, b.Process.Begin) })
		for n, l := range starts {
			k := set{start: n}
			if grouped {
				k.peers = l.Process.Peers
			}
			sets[k] = append(sets[k], l)
		}
	}
	for _, ranks := range sets {
		slices.SortFunc(ranks, func(a, b *timeline.Loader) int { return cmp.Compare(a.Rank(), b.Rank()) })
	}
	return slices.SortedFunc(maps.Values(sets), func(a, b timeline.Ranks) int {
		return cmp.Or(cmp.Compare(a[0].Rank(), b[0].Rank()), cmp.Compare(a[0].Process.Begin, b[0].Process.Begin))
	})
}

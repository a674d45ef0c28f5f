package redraw

import (
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Nothing says why no draws of a loader could be compared.
func Nothing(s *draws.Streams, ranks timeline.Ranks) string {
	var rare, reseeded, ordering []*draws.Draws
	for _, l := range ranks {
		for _, d := range s.Of(l) {
			switch {
			case d.Reseeded > 0 && !d.Data():
				reseeded = append(reseeded, d)
			case d.Ordering && d.Drew == 0 && d.OrderDraws:
				ordering = append(ordering, d)
			case d.Drew > 0 && !d.Data():
				rare = append(rare, d)
			}
		}
	}
	switch {
	case len(reseeded) > 0:
		return words.List(draws.Paths(reseeded)) + ": seeded anew inside of the fetches, so its draws cannot be followed"
	case len(rare) > 0:
		return words.List(draws.Paths(rare)) + ": drawn from in fewer than half of the fetches"
	case len(ordering) > 0:
		return words.List(draws.Paths(ordering)) + ": drawn from before the first sample only"
	}
	return "nothing random, or a generator that dptrace cannot reach"
}

package redraw

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Open says what could not be compared of a loader although something was; "" all
// that is drawn from was.
func (c *Comparison) Open(s *draws.Streams, ranks timeline.Ranks) string {
	compared := func(d *draws.Draws) bool {
		at := c.slots[d.Slot.Key()]
		return at != nil && (at.parties > 1 || at.none)
	}
	var anew, frozen, once []*draws.Draws
	drew := map[draws.Key]bool{}
	for _, l := range ranks {
		for _, d := range s.Of(l) {
			drew[d.Slot.Key()] = drew[d.Slot.Key()] || d.Drew > 0
		}
	}
	for _, l := range ranks {
		for _, d := range s.Of(l) {
			switch {
			case compared(d):
			case d.Reseeded > 0 && !d.Data():
				anew = append(anew, d)
			case d.Data():
				once = append(once, d)
			case d.Seeded && !drew[d.Slot.Key()]:
				frozen = append(frozen, d)
			}
		}
	}
	switch {
	case len(anew) > 0:
		return words.List(draws.Paths(anew)) + ": seeded anew inside of the fetches, so its draws cannot be followed"
	case len(frozen) > 0:
		return words.List(draws.Paths(frozen)) + ": seeded in the first fetch, and in the same state after every other one: " +
			"it was left alone, or is seeded to the same numbers in each call"
	case len(once) > 0:
		return words.List(draws.Paths(once)) + ": nothing to compare its draws with"
	}
	if missed := s.Unsearched(ranks); missed != "" {
		return missed
	}
	return c.Effects.Leftover()
}

// Nothing says why no draws of a loader could be compared.
func (c *Comparison) Nothing(s *draws.Streams, ranks timeline.Ranks) string {
	if open := c.Open(s, ranks); open != "" {
		return open
	}
	var rare, ordering []*draws.Draws
	for _, l := range ranks {
		for _, d := range s.Of(l) {
			switch {
			case d.Ordering && d.Drew == 0 && d.OrderDraws:
				ordering = append(ordering, d)
			case d.Drew > 0 && !d.Data():
				rare = append(rare, d)
			}
		}
	}
	none := slices.SortedFunc(func(yield func(draws.Key) bool) {
		for k, at := range c.slots {
			if at.none && !yield(k) {
				return
			}
		}
	}, func(a, b draws.Key) int { return cmp.Compare(a.Path, b.Path) })
	switch {
	case len(none) > 0:
		return none[0].Path + ": " + c.Effects.Why(none[0])
	case len(rare) > 0:
		return words.List(draws.Paths(rare)) + ": drawn from in fewer than half of the fetches"
	case len(ordering) > 0:
		return words.List(draws.Paths(ordering)) + ": drawn from before the first sample only"
	}
	return "nothing random, or a generator that dptrace cannot reach"
}

// Package redraw is what the three rules about random numbers that are
// drawn twice have in common: which draws may be compared at all, and how
// what they share becomes one finding for a loader.
package redraw

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// MinWords is how much two intervals must share: 64 bits.
const MinWords = 2

// Group is one loader on all ranks that have it.
type Group struct {
	ID      int
	Loaders timeline.Ranks
	Draws   map[*timeline.Loader][]*draws.Draws
}

// Groups sorts draws by loader.
func Groups(t *timeline.Timeline, drawn []*draws.Draws) []*Group {
	var groups []*Group
	byID := map[int]*Group{}
	for _, ranks := range t.ByLoader() {
		g := &Group{ID: ranks.ID(), Loaders: ranks, Draws: map[*timeline.Loader][]*draws.Draws{}}
		groups = append(groups, g)
		byID[g.ID] = g
	}
	for _, d := range drawn {
		l := d.Worker.Pass.Loader
		g := byID[l.ID]
		g.Draws[l] = append(g.Draws[l], d)
	}
	for _, g := range groups {
		for _, list := range g.Draws {
			slices.SortStableFunc(list, func(a, b *draws.Draws) int {
				return cmp.Or(cmp.Compare(a.Worker.Pass.Number, b.Worker.Pass.Number), cmp.Compare(a.Worker.Number, b.Worker.Number))
			})
		}
	}
	return groups
}

// Key is what makes two draws comparable: one generator, as the program names
// it. Equal streams in different generators are never a finding.
type Key struct{ Path, Kind string }

// KeyOf the generator of d.
func KeyOf(d *draws.Draws) Key { return Key{d.Slot.Path, d.Slot.Kind} }

// BySlot sorts draws by generator.
func BySlot(drawn []*draws.Draws) map[Key][]*draws.Draws {
	m := map[Key][]*draws.Draws{}
	for _, d := range drawn {
		m[KeyOf(d)] = append(m[KeyOf(d)], d)
	}
	return m
}

// Pair is two draws of the same numbers.
type Pair struct {
	First, Second *draws.Draws
	Words         int64        // that they share
	Piece         draws.Shared // the first such piece
	Certainty     finding.Certainty
}

// Hit is one generator whose numbers were drawn twice.
type Hit struct {
	Slot      *draws.Slot
	Certainty finding.Certainty
	Pairs     []*Pair
	All       []*draws.Draws // of this generator, that were compared
}

// Hits collects pairs by generator.
type Hits struct {
	byKey map[Key]*Hit
	pairs map[[2]*draws.Draws]*Pair
}

// Add takes pieces that were drawn twice; judge says how sure it is that a pair
// is a bug, 0 if it is none.
func (h *Hits) Add(shared []draws.Shared, judge func(first, second *draws.Draws) finding.Certainty) {
	if h.byKey == nil {
		h.byKey, h.pairs = map[Key]*Hit{}, map[[2]*draws.Draws]*Pair{}
	}
	for _, s := range shared {
		k := [2]*draws.Draws{s.First, s.Second}
		p := h.pairs[k]
		if p == nil {
			p = &Pair{First: s.First, Second: s.Second, Piece: s, Certainty: judge(s.First, s.Second)}
			h.pairs[k] = p
			if p.Certainty != 0 {
				hit := h.byKey[KeyOf(s.First)]
				if hit == nil {
					hit = &Hit{Slot: s.First.Slot}
					h.byKey[KeyOf(s.First)] = hit
				}
				hit.Pairs = append(hit.Pairs, p)
			}
		}
		p.Words += s.To - s.From
	}
}

// List gives the hits that share enough, the surest first. compared has the
// draws of each generator that took part.
func (h *Hits) List(compared map[Key][]*draws.Draws) []*Hit {
	var list []*Hit
	for k, hit := range h.byKey {
		hit.Pairs = slices.DeleteFunc(hit.Pairs, func(p *Pair) bool { return p.Words < MinWords })
		for _, p := range hit.Pairs {
			hit.Certainty = max(hit.Certainty, p.Certainty)
		}
		hit.Pairs = slices.DeleteFunc(hit.Pairs, func(p *Pair) bool { return p.Certainty < hit.Certainty })
		if hit.All = compared[k]; len(hit.All) == 0 { // only rare draws, which are not compared for more than a note
			hit.All = hit.drawn()
		}
		if len(hit.Pairs) > 0 {
			list = append(list, hit)
		}
	}
	slices.SortFunc(list, func(a, b *Hit) int {
		return cmp.Or(-cmp.Compare(a.Certainty, b.Certainty), cmp.Compare(a.Slot.Path, b.Slot.Path), cmp.Compare(a.Slot.Kind, b.Slot.Kind))
	})
	return list
}

// drawn is the draws of the hit's pairs, each once, by pass.
func (h *Hit) drawn() []*draws.Draws {
	var all []*draws.Draws
	for _, p := range h.Pairs {
		for _, d := range []*draws.Draws{p.First, p.Second} {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *draws.Draws) int { return cmp.Compare(a.Worker.Pass.Number, b.Worker.Pass.Number) })
	return all
}

// Best is the surest of the hits.
func Best(hits []*Hit) finding.Certainty {
	if len(hits) == 0 {
		return 0
	}
	return hits[0].Certainty
}

// Tally counts draws in 32-bit words.
type Tally struct {
	Made, Distinct int64
	AtLeast        bool // more may have been drawn than was seen
}

// Count sums up the raw outputs of some draws of one generator, in its own
// words of 32 or 64 bits.
func Count(drawn []*draws.Draws, width int64) Tally {
	var t Tally
	var c draws.IntervalSet
	for _, d := range drawn {
		c.Add(d)
		t.Made += d.Words
		t.AtLeast = t.AtLeast || d.Late || d.Unfollowed > 0 || d.Gaps > 0
	}
	t.Distinct = c.Words()
	t.Made, t.Distinct = (t.Made+width-1)/width, (t.Distinct+width-1)/width
	return t
}

// ByPass sorts draws by pass.
func ByPass(drawn []*draws.Draws) iter.Seq2[*timeline.Pass, []*draws.Draws] {
	return func(yield func(*timeline.Pass, []*draws.Draws) bool) {
		for len(drawn) > 0 { // sorted by pass
			pass := drawn[0].Worker.Pass
			n := 1
			for n < len(drawn) && drawn[n].Worker.Pass == pass {
				n++
			}
			if !yield(pass, drawn[:n]) {
				return
			}
			drawn = drawn[n:]
		}
	}
}

// Outputs is 32-bit words of a hit as a number of the generator's raw outputs.
func Outputs(h *Hit, drawn int64) string { return words.Number(drawn / rng.Width(h.Slot.Kind)) }

// OldTorch reports whether this PyTorch does not seed NumPy in workers: before 1.9.
func OldTorch(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major < 1 || major == 1 && minor < 9
}

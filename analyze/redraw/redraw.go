// Package redraw is what the three rules about random numbers that are drawn
// twice have in common: how draws that must differ are compared, and how what
// they share becomes one finding.
package redraw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
)

// minWords is how much two draws must share: 64 bits.
const minWords = 2

// Pair is two draws of the same numbers.
type Pair struct {
	First, Second *draws.Draws
	Words         int64        // that they share
	Piece         draws.Shared // the first such piece
	Certainty     finding.Certainty
}

// Judge says how sure it is that two draws of the same numbers are a bug; 0: they
// are none.
type Judge func(first, second *draws.Draws) finding.Certainty

// Pairs compares each of some draws with all before it.
func Pairs(drawn []*draws.Draws, judge Judge) (pairs []*Pair) {
	var before draws.IntervalSet
	known := map[[2]*draws.Draws]*Pair{}
	for _, d := range drawn {
		for _, s := range before.Add(d) {
			k := [2]*draws.Draws{s.First, s.Second}
			if known[k] == nil {
				known[k] = &Pair{First: s.First, Second: s.Second, Piece: s}
				pairs = append(pairs, known[k])
			}
			known[k].Words += s.To - s.From
		}
	}
	return slices.DeleteFunc(pairs, func(p *Pair) bool {
		if p.Words >= minWords {
			p.Certainty = judge(p.First, p.Second)
		}
		return p.Certainty == 0
	})
}

// Hit is one generator whose numbers were drawn twice.
type Hit struct {
	Slot      *draws.Slot
	Certainty finding.Certainty
	Pairs     []*Pair        // the surest
	Compared  []*draws.Draws // of this generator
}

// Comparison compares draws of one loader that must differ, and keeps those that
// do not.
type Comparison struct {
	Judge   Judge
	Streams int // how many were compared with one of another party
	Parties int // how many drew from one generator, at most

	hits     map[Key]*Hit
	compared map[Key][]*draws.Draws
}

// Key is what makes two draws comparable: one generator, as the program names
// it. Equal streams in different generators are never a finding.
type Key struct{ Path, Kind string }

// KeyOf the generator of d.
func KeyOf(d *draws.Draws) Key { return Key{d.Slot.Path, d.Slot.Kind} }

// Among compares some draws, generator by generator. party is whose a draw is:
// that of a worker, a pass, a rank. Draws in a few fetches only (retries, a cache)
// are compared with each other, for no more than a note.
func (c *Comparison) Among(drawn []*draws.Draws, party func(*draws.Draws) any) {
	if c.hits == nil {
		c.hits, c.compared = map[Key]*Hit{}, map[Key][]*draws.Draws{}
	}
	for key, list := range byKey(drawn) {
		var data, rare []*draws.Draws
		parties := map[any]bool{}
		for _, d := range list {
			if d.Data() {
				data = append(data, d)
				parties[party(d)] = true
			} else {
				rare = append(rare, d)
			}
		}
		if c.Parties = max(c.Parties, len(parties)); len(parties) > 1 {
			c.Streams += len(data)
		}
		c.compared[key] = append(c.compared[key], data...)
		for _, p := range append(Pairs(data, c.Judge), Pairs(rare, c.judgeRare)...) {
			if c.hits[key] == nil {
				c.hits[key] = &Hit{Slot: p.First.Slot}
			}
			c.hits[key].Pairs = append(c.hits[key].Pairs, p)
		}
	}
}

// byKey sorts draws by generator.
func byKey(drawn []*draws.Draws) map[Key][]*draws.Draws {
	m := map[Key][]*draws.Draws{}
	for _, d := range drawn {
		m[KeyOf(d)] = append(m[KeyOf(d)], d)
	}
	return m
}

func (c *Comparison) judgeRare(a, b *draws.Draws) finding.Certainty {
	if a.Drew == 0 || b.Drew == 0 || a.Reseeded > 0 || b.Reseeded > 0 {
		return 0
	}
	return min(c.Judge(a, b), finding.Note)
}

// Hits is the generators whose numbers were drawn twice, the surest first.
func (c *Comparison) Hits() []*Hit {
	for key, h := range c.hits {
		for _, p := range h.Pairs {
			h.Certainty = max(h.Certainty, p.Certainty)
		}
		h.Pairs = slices.DeleteFunc(h.Pairs, func(p *Pair) bool { return p.Certainty < h.Certainty })
		if h.Compared = c.compared[key]; len(h.Compared) == 0 { // only rare draws
			h.Compared = h.drawn()
		}
	}
	return slices.SortedFunc(maps.Values(c.hits), func(a, b *Hit) int {
		return cmp.Or(-cmp.Compare(a.Certainty, b.Certainty), cmp.Compare(a.Slot.Path, b.Slot.Path), cmp.Compare(a.Slot.Kind, b.Slot.Kind))
	})
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

// Reason is what a loader's line says where draws could be compared.
func (c *Comparison) Reason(hits []*Hit) string {
	switch {
	case Best(hits) > finding.Note:
		return "the same numbers from " + Names(hits)
	case len(hits) > 0:
		return "no more than a note on " + Names(hits)
	}
	return fmt.Sprintf("%d streams, all distinct", c.Streams)
}

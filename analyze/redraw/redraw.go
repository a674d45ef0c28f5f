// Package redraw is what the three rules about random numbers that are drawn
// twice have in common: how draws that must differ are compared, and how what
// they share becomes one finding.
package redraw

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/effects"
	"github.com/dptrace/dptrace/analyze/evidence/contents"
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
	Pairs     []*Pair        // the surest; of these the ones without an excuse, if there are any
	Compared  []*draws.Draws // of this generator
}

// Comparison compares draws of one loader that must differ, and keeps those that
// do not.
type Comparison struct {
	Case    *detect.Case
	Judge   Judge
	Effects *effects.Effects
	Excuses []Excuse
	Streams int // how many were compared with one of another party
	Parties int // how many drew from one generator, at most

	slots map[draws.Key]*slot
}

// slot is what is known of one generator.
type slot struct {
	hit      *Hit
	compared []*draws.Draws // data draws
	parties  int            // that drew data from it, at most, of those that were compared
	none     bool           // there are overlaps, and nothing depends on what is drawn
}

// Compare begins a comparison of a loader's draws.
func Compare(c *detect.Case, judge Judge, excuses []Excuse) *Comparison {
	looked := effects.Look(detect.Of(c, draws.Source), detect.Of(c, contents.Source), c.Loaders)
	return &Comparison{Case: c, Judge: judge, Effects: looked, Excuses: excuses, slots: map[draws.Key]*slot{}}
}

// Among compares some draws, generator by generator. party is whose a draw is:
// that of a worker, a pass, a rank. Draws in a few fetches only (retries, a cache)
// are compared too: among themselves for no more than a note.
func (c *Comparison) Among(drawn []*draws.Draws, party func(*draws.Draws) any) {
	for key, list := range byKey(drawn) {
		s := c.slots[key]
		if s == nil {
			s = &slot{}
			c.slots[key] = s
		}
		var data, rare []*draws.Draws
		parties := map[any]bool{}
		for _, d := range list {
			switch {
			case d.Data():
				data = append(data, d)
				parties[party(d)] = true
			case d.Drew > 0 && d.Reseeded == 0:
				rare = append(rare, d)
			}
		}
		s.compared = append(s.compared, data...)
		pairs := Pairs(slices.Concat(data, rare), c.judge)
		if s.none = s.none || len(pairs) > 0 && c.Effects.None(key); s.none {
			continue
		}
		if c.Parties = max(c.Parties, len(parties)); len(parties) > 1 {
			c.Streams += len(data)
		}
		s.parties = max(s.parties, len(parties))
		for _, p := range pairs {
			if s.hit == nil {
				s.hit = &Hit{Slot: p.First.Slot}
			}
			s.hit.Pairs = append(s.hit.Pairs, p)
		}
	}
}

// byKey sorts draws by generator.
func byKey(drawn []*draws.Draws) map[draws.Key][]*draws.Draws {
	m := map[draws.Key][]*draws.Draws{}
	for _, d := range drawn {
		m[d.Slot.Key()] = append(m[d.Slot.Key()], d)
	}
	return m
}

// judge draws of which none may be rare.
func (c *Comparison) judge(a, b *draws.Draws) finding.Certainty {
	if certainty := c.Judge(a, b); a.Data() || b.Data() {
		return certainty
	}
	return min(c.Judge(a, b), finding.Note)
}

// Hits is the generators whose numbers were drawn twice, the surest first.
func (c *Comparison) Hits() []*Hit {
	var hits []*Hit
	for _, s := range c.slots {
		h := s.hit
		if h == nil {
			continue
		}
		for _, p := range h.Pairs {
			h.Certainty = max(h.Certainty, p.Certainty)
		}
		h.Pairs = slices.DeleteFunc(h.Pairs, func(p *Pair) bool { return p.Certainty < h.Certainty })
		if h.Compared = s.compared; len(h.Compared) == 0 { // only rare draws
			h.Compared = h.drawn()
		}
		c.weigh(h)
		hits = append(hits, h)
	}
	slices.SortFunc(hits, func(a, b *Hit) int {
		return cmp.Or(-cmp.Compare(a.Certainty, b.Certainty), cmp.Compare(a.Slot.Path, b.Slot.Path), cmp.Compare(a.Slot.Kind, b.Slot.Kind))
	})
	return hits
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
func Best(hits []*Hit) (best finding.Certainty) {
	for _, h := range hits {
		best = max(best, h.Certainty)
	}
	return best
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

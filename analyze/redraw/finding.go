package redraw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/effects"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/reseed"
	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Wording is what a rule says in its own words.
type Wording struct {
	Title, Cost string
	Why         []string // further evidence: what made the numbers equal
}

// Report is everything that one finding is made from.
type Report struct {
	Scope   reseed.Scope
	Loader  *timeline.Loader // on its first rank
	Streams *draws.Streams
	Effects *effects.Effects
	Hits    []*Hit // the surest first; not empty
}

// described is how many generators are described one by one.
const described = 4

// Finding writes the finding.
func (r *Report) Finding(w Wording) finding.Finding {
	f := finding.Finding{Certainty: Best(r.Hits), Title: w.Title, Cost: w.Cost, Fix: r.fix(), Facts: &facts{r.Hits, r.Effects}}
	for i, h := range r.Hits {
		if i == described && len(r.Hits) > described+1 {
			text := fmt.Sprintf("%d more generators: %s", len(r.Hits)-i, words.List(names(r.Hits[i:])))
			f.Evidence = append(f.Evidence, finding.Evidence{Text: text})
			break
		}
		f.Evidence = append(f.Evidence, r.describe(h)...)
	}
	for _, why := range w.Why {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: why})
	}
	return f
}

// Apart is some hits as the findings that they make: those of one certainty are
// one.
func Apart(hits []*Hit) (all [][]*Hit) {
	for _, h := range hits { // the surest first
		if n := len(all); n > 0 && all[n-1][0].Certainty == h.Certainty {
			all[n-1] = append(all[n-1], h)
		} else {
			all = append(all, []*Hit{h})
		}
	}
	return all
}

func names(hits []*Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Slot.Name())
	}
	return out
}

// Names of the generators of some hits, for a title.
func Names(hits []*Hit) string {
	n := names(hits)
	if len(n) > 2 {
		return fmt.Sprintf("%s and %d more generators", n[0], len(n)-1)
	}
	return words.List(n)
}

// describe the first pair of a hit.
func (r *Report) describe(h *Hit) []finding.Evidence {
	p := h.Pairs[0]
	width := rng.Width(h.Slot.Kind)
	about := h.Slot.Kind
	if class := short(h.Slot.Class); class != "" {
		about = class + ", " + about
	}
	if at := madeAt(p.First); at != "" {
		about += ", made at " + at
	}
	count, unseen := words.Number(p.Words/width), ""
	if p.First.AtLeast && p.Second.AtLeast {
		count, unseen = "≥ "+count, " (the first state was not seen)"
	}
	text := fmt.Sprintf("%s (%s): %s and %s drew the same %s outputs of %d bits%s",
		h.Slot.Path, about, Who(p.First, p.Second), Who(p.Second, p.First), count, 32*width, unseen)
	if out := r.Streams.Outputs(p.Piece.Stream, p.Piece.From, 3); out != nil {
		var hex []string
		for i, v := range out {
			if int64(i) < max(1, (p.Piece.To-p.Piece.From)/width) {
				hex = append(hex, fmt.Sprintf("0x%0*x", 8*width, v))
			}
		}
		text += ", beginning with " + words.List(hex)
	}
	list := []finding.Evidence{{Text: text + ".", Refs: Refs(p)}}
	state, at := r.Streams.Origin(p.Piece.Stream, p.Piece.From)
	return append(list, replay(h.Slot, state, at)...)
}

// short is a class without the module's inner parts: numpy.random._generator.Generator is numpy's Generator.
func short(class string) string {
	theirs := strings.HasPrefix(class, "numpy.") || strings.HasPrefix(class, "torch.") || strings.HasPrefix(class, "_random.")
	if i := strings.LastIndexByte(class, '.'); i >= 0 && theirs {
		return strings.TrimPrefix(class[:strings.IndexByte(class, '.')]+class[i:], "_")
	}
	return class
}

// madeAt is the line that makes a generator; "" unknown.
func madeAt(d *draws.Draws) string {
	if d.Slot.File == "" {
		return ""
	}
	return timeline.Place(d.Worker.Pass.Loader.Process.Cwd, d.Slot.File, d.Slot.Line)
}

// Who names a worker, and what of pass and rank differs from another's or helps
// to find it.
func Who(d, other *draws.Draws) string {
	w := d.Worker
	text := fmt.Sprintf("worker %d", w.Number)
	if w.Number < 0 {
		text = "the main process"
	}
	text += fmt.Sprintf(" in pass %d", w.Pass.Number)
	if a, b := w.Pass.Loader.Rank(), other.Worker.Pass.Loader.Rank(); a != b || a > 0 {
		text += fmt.Sprintf(" of rank %d", a)
	}
	return text
}

// Refs are the states around what a pair shares.
func Refs(p *Pair) []finding.Ref {
	return append(refs(p.First, p.Piece), refs(p.Second, p.Piece)...)
}

// refs are the states around a piece of a draw.
func refs(d *draws.Draws, piece draws.Shared) []finding.Ref {
	part := d.Worker.Process.Part.Name
	for _, s := range d.Spans {
		if s.Stream == piece.Stream && s.From <= piece.From && piece.From < s.To {
			return []finding.Ref{{Part: part, Table: "rng_state", Seq: s.Before}, {Part: part, Table: "rng_state", Seq: s.After}}
		}
	}
	return nil
}

// fix for all generators of the report at once.
func (r *Report) fix() string {
	l := r.Loader.First()
	c := reseed.Case{Scope: r.Scope, At: r.Loader.At(), Main: l.NumWorkers <= 0, Init: l.WorkerInit, Generator: l.Generator, SameBase: true}
	for i, h := range r.Hits {
		first := h.Pairs[0].First
		t := reseed.Target{Slot: h.Slot, Seed: i, MadeLater: first.MadeLater, At: madeAt(first)}
		for j, earlier := range r.Hits[:i] {
			if alike(earlier, h) {
				t.Seed = c.Targets[j].Seed
				break
			}
		}
		c.Targets = append(c.Targets, t)
		for _, p := range h.Pairs {
			a, b := p.First.Worker.Pass, p.Second.Worker.Pass
			c.SameBase = c.SameBase && a != b && a.Seeded && b.Seeded && a.BaseSeed == b.BaseSeed
		}
	}
	return c.Code()
}

// alike reports whether two generators give one worker the same numbers.
func alike(a, b *Hit) bool {
	first := a.Pairs[0].First
	for _, d := range b.Compared {
		if d.Worker == first.Worker {
			var c draws.IntervalSet
			c.Add(first)
			return len(c.Add(d)) > 0
		}
	}
	return false
}

// RanksOf lists the ranks whose loaders took part in some hits; nil if they are
// not ranks.
func RanksOf(hits []*Hit) []int {
	seen := map[int]bool{}
	for _, h := range hits {
		for _, p := range h.Pairs {
			seen[p.First.Worker.Pass.Loader.Rank()] = true
			seen[p.Second.Worker.Pass.Loader.Rank()] = true
		}
	}
	var ranks []int
	for r := range seen {
		if r >= 0 {
			ranks = append(ranks, r)
		}
	}
	slices.SortFunc(ranks, cmp.Compare[int])
	return ranks
}

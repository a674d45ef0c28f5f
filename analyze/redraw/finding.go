package redraw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/reseed"
	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Text is what a rule says in its own words.
type Text struct {
	Title, Cost, NotABugIf string
	Why                    []string // further evidence: what made the numbers equal
}

// Report is everything that one finding is made from.
type Report struct {
	Rule, DP string
	Scope    reseed.Scope
	Timeline *timeline.Timeline
	Streams  *draws.Streams
	Group    *Group
	Hits     []*Hit
}

// described is how many generators are described one by one.
const described = 4

// Finding writes the finding.
func (r *Report) Finding(text Text) finding.Finding {
	loader := r.Group.Loaders[0]
	f := finding.Finding{Rule: r.Rule, DP: r.DP, Certainty: Best(r.Hits), Title: text.Title, Cost: text.Cost, NotABugIf: text.NotABugIf, Proof: "hook",
		Loader: finding.Loader{ID: r.Group.ID, At: loader.At(), Role: string(r.Group.Loaders.Role())}}
	for i, h := range r.Hits {
		if i == described && len(r.Hits) > described+1 {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("%d more generators: %s", len(r.Hits)-i, words.List(names(r.Hits[i:])))})
			break
		}
		f.Evidence = append(f.Evidence, r.describe(h)...)
	}
	for _, why := range text.Why {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: why})
	}
	f.Fix = r.fix()
	f.Verify = r.Timeline.Verify(r.Rule)
	return f
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
	if p.First.Late && p.Second.Late {
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
	if replay := r.Streams.Replay(h.Slot, p.Piece.Stream, p.Piece.From); replay != "" {
		list = append(list, finding.Evidence{Text: "To see them by hand: " + replay + "."})
	}
	return list
}

// short is a class without the module's inner parts: numpy.random._generator.Generator is numpy's Generator.
func short(class string) string {
	if i := strings.LastIndexByte(class, '.'); i >= 0 && (strings.HasPrefix(class, "numpy.") || strings.HasPrefix(class, "torch.") || strings.HasPrefix(class, "_random.")) {
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
	words := fmt.Sprintf("worker %d", w.Number)
	if w.Number < 0 {
		words = "the main process"
	}
	words += fmt.Sprintf(" in pass %d", w.Pass.Number)
	if a, b := w.Pass.Loader.Rank(), other.Worker.Pass.Loader.Rank(); a != b || a > 0 {
		words += fmt.Sprintf(" of rank %d", a)
	}
	return words
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
	l := r.Group.Loaders[0]
	o := l.First()
	c := reseed.Case{Scope: r.Scope, At: l.At(), Main: o.NumWorkers <= 0, Init: o.WorkerInit, Generator: o.Generator}
	c.SameBase = true
	for i, h := range r.Hits {
		first := h.Pairs[0].First
		t := reseed.Target{Slot: h.Slot, Seed: i, Made: first.Made, At: madeAt(first)}
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
	for _, d := range b.All {
		if d.Worker == first.Worker {
			var c draws.IntervalSet
			c.Add(first)
			return len(c.Add(d)) > 0
		}
	}
	return false
}

// Totals of the draws of some hits, in raw outputs.
func Totals(hits []*Hit) Tally {
	var t Tally
	for _, h := range hits {
		n := Count(h.All, rng.Width(h.Slot.Kind))
		t.Made += n.Made
		t.Distinct += n.Distinct
		t.AtLeast = t.AtLeast || n.AtLeast
	}
	return t
}

// Variety says how many of the draws were distinct.
func (t Tally) Variety() string {
	least := ""
	if t.AtLeast {
		least = "≥ "
	}
	return fmt.Sprintf("%s%s distinct of %s%s", least, words.Number(t.Distinct), least, words.Number(t.Made))
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

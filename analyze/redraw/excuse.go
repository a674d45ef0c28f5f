package redraw

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/effects"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Excuse is a kind of program in which two draws of the same numbers are no bug,
// and what excludes it.
type Excuse struct {
	Text     string
	Excluded func(*detect.Case, *effects.Effects, *Hit, *Pair) bool
}

// facts of a finding, for its excuses.
type facts struct {
	hits    []*Hit
	effects *effects.Effects
}

// Excuses of a rule, as the frame asks for them.
func Excuses(list []Excuse) (all []detect.Excuse) {
	for _, x := range list {
		all = append(all, detect.Excuse{Text: x.Text, Excluded: func(c *detect.Case, f *finding.Finding) bool {
			known, ok := f.Facts.(*facts)
			return ok && !slices.ContainsFunc(known.hits, func(h *Hit) bool {
				return slices.ContainsFunc(h.Pairs, func(p *Pair) bool { return !x.Excluded(c, known.effects, h, p) })
			})
		}})
	}
	return all
}

// weigh the pairs of a hit: where some have no excuse, those are what it says.
func (c *Comparison) weigh(h *Hit) {
	var sound []*Pair
	for _, p := range h.Pairs {
		if !slices.ContainsFunc(c.Excuses, func(x Excuse) bool { return !x.Excluded(c.Case, c.Effects, h, p) }) {
			sound = append(sound, p)
		}
	}
	switch {
	case h.Certainty == finding.Proven && (len(sound) == 0 || !c.Effects.Witnessed(h.Slot.Key())) && c.lost(h):
		h.Certainty = finding.Note // what is lost may excuse it
	case len(sound) > 0:
		h.Pairs = sound
	case h.Certainty == finding.Proven:
		h.Certainty = finding.Likely
	}
}

// lost reports whether rows are lost that say what fetches were asked for and gave.
func (c *Comparison) lost(h *Hit) bool {
	return slices.ContainsFunc(h.Pairs, func(p *Pair) bool {
		for _, w := range []*timeline.WorkerPass{p.First.Worker, p.Second.Worker} {
			main := w.Pass.Loader.Process
			if !main.Part.Sealed || c.Case.Incomplete(main, "batch_put", "digest", "batch_fetch") ||
				w.Process != nil && c.Case.Incomplete(w.Process, "digest", "batch_fetch", "rng_state") {
				return true
			}
		}
		return false
	})
}

// Salt: draws on which no sample depends.
var Salt = Excuse{
	Text:     "what is drawn leaves no mark on the samples (a salt, a choice among copies of one file).",
	Excluded: func(_ *detect.Case, e *effects.Effects, h *Hit, _ *Pair) bool { return e.Seen(h.Slot.Key()) },
}

// Untrained: batches on which no step trains.
var Untrained = Excuse{
	Text: "these batches train nothing: an evaluation, an export.",
	Excluded: func(_ *detect.Case, _ *effects.Effects, _ *Hit, p *Pair) bool {
		return p.First.Worker.Pass.Role == timeline.Train && p.Second.Worker.Pass.Role == timeline.Train
	},
}

// Order: draws of a stream that decide which samples come.
var Order = Excuse{
	Text: "what is drawn decides which samples this IterableDataset yields (a shuffle on which all workers must agree).",
	Excluded: func(_ *detect.Case, e *effects.Effects, h *Hit, p *Pair) bool {
		return !p.First.Ordering && !p.Second.Ordering || e.Seen(h.Slot.Key())
	},
}

// BySample: numbers that belong to a sample, and come with it.
var BySample = Excuse{
	Text: "the numbers belong to the samples: one augmentation for each clip, a fixed synthetic data set that is made anew " +
		"each time, pairs on purpose (antithetic ones, members of an ensemble).",
	Excluded: func(_ *detect.Case, e *effects.Effects, h *Hit, p *Pair) bool {
		a, b := p.First, p.Second
		switch {
		case a.Reseeded > 0 || b.Reseeded > 0: // from what it is about to read
			return false
		case e.Elsewhere(a, b):
			return true
		case a.Worker.Pass == b.Worker.Pass:
			return false
		}
		return allSeeded(h, a.Worker.Pass, b.Worker.Pass) || workersAlike(e, h, a.Worker.Pass)
	},
}

// allSeeded reports whether torch itself was seeded alike before both passes, the
// shuffled order of the samples included: what comes again is not one data set,
// but all that is random.
func allSeeded(h *Hit, p, q *timeline.Pass) bool {
	return h.Slot.Role == "global" && p.Seeded && q.Seeded && p.BaseSeed == q.BaseSeed && p.BaseSeed != 0 &&
		samplers.OrderOf(p.DataLoader()) == samplers.Shuffles
}

// workersAlike reports whether two workers of a pass drew the same numbers for
// different samples: then they belong to none.
func workersAlike(e *effects.Effects, h *Hit, p *timeline.Pass) bool {
	var before draws.IntervalSet
	for _, d := range h.Compared {
		if d.Worker.Pass != p || d.Reseeded > 0 {
			continue
		}
		for _, s := range before.Add(d) {
			if s.First.Worker != d.Worker && e.Elsewhere(s.First, d) {
				return true
			}
		}
	}
	return false
}

// Idle reports whether a pass is an evaluation, or may be one for all that is
// known: of batches that nothing learned from, equal numbers are a note.
func Idle(p *timeline.Pass) bool {
	switch {
	case p.Role == timeline.Eval:
		return true
	case p.Role == timeline.Train:
		return false
	case p.Blind:
		return true
	}
	for i := range p.Delivered {
		if p.Used(i) {
			return false
		}
	}
	return p.Watched()
}

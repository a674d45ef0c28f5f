package orderrepeats

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// excuses are programs in which an order comes again and nothing is wrong. A
// DistributedSampler that was told one epoch twice, and another data in each pass,
// are no findings to begin with.
var excuses = []detect.Excuse{
	{
		Text: "the sampler is meant to give one order, by length or by difficulty.",
		Excluded: by(func(s *seen) bool {
			return s.repeats[0].First.Promise != samplers.Own && s.repeats[0].Again.Promise != samplers.Own
		}),
	},
	{
		Text:     "the DataLoader that is made anew for each pass has other data each time.",
		Excluded: by(func(s *seen) bool { return s.sameData(s.repeats[0]) }),
	},
	{
		Text:     "these passes do not train.",
		Excluded: by(func(s *seen) bool { return trains(s.repeats[0]) }),
	},
	{
		Text:     "the batch sampler, which is not PyTorch's, decides on the order and is meant to give one.",
		Excluded: by(func(s *seen) bool { return decides(s.repeats[0]) }),
	},
	{
		Text:     "the pass that was broken off was repeated on purpose.",
		Excluded: by(func(s *seen) bool { return ended(s.repeats[0]) }),
	},
	{
		Text:     "an order is meant for a few passes in a row (sweeps over one part of the model after the other), and a new one after them.",
		Excluded: by(func(s *seen) bool { return !orders.InARow(s.training, s.repeats) }),
	},
	{
		Text: "the stream was shuffled once, and is meant to come in that order.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			_, of := f.Facts.(*stream)
			return !of
		},
	},
}

// by makes an excuse look at what was seen.
func by(excluded func(*seen) bool) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool {
		if _, of := f.Facts.(*stream); of {
			return true
		}
		s, ok := f.Facts.(*seen)
		return ok && len(s.repeats) > 0 && excluded(s)
	}
}

// sameData reports whether both passes are known to be over the same data.
func (s *seen) sameData(r orders.Repeat) bool { return r.SameData(detect.Of(s.c, values.Source)) }

// trains reports whether both passes train.
func trains(r orders.Repeat) bool {
	return r.First.Role == timeline.Train && r.Again.Role == timeline.Train
}

// decides reports whether the sampler that shuffles decides on the order.
func decides(r orders.Repeat) bool {
	return !slices.ContainsFunc([]*orders.Pass{r.First, r.Again}, func(p *orders.Pass) bool { return p.Promise == samplers.Within })
}

// ended reports whether both passes took as much.
func ended(r orders.Repeat) bool { return r.All }

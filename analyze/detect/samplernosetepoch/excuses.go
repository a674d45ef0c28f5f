package samplernosetepoch

import (
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// excuses are programs in which a sampler stays at one epoch and nothing is wrong.
// An order that does not depend on the epoch is no finding to begin with.
var excuses = []detect.Excuse{
	{
		Text:     "the DataLoader that is made anew for each pass has other data each time.",
		Excluded: by((*replay).sameData),
	},
	{
		Text:     "the sampler, which is not PyTorch's own, is meant to give one order, in which its epoch has no part.",
		Excluded: by((*replay).promised),
	},
	{
		Text:     "these passes do not train.",
		Excluded: by((*replay).trains),
	},
	{
		Text:     "the pass that was broken off was repeated on purpose.",
		Excluded: by((*replay).ended),
	},
}

// by makes an excuse look at the surest repeat.
func by(excluded func(*replay, orders.Repeat) bool) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool {
		r, ok := f.Facts.(*replay)
		return ok && len(r.repeats) > 0 && excluded(r, r.repeats[0])
	}
}

func (r *replay) sameData(x orders.Repeat) bool { return x.SameData(detect.Of(r.c, values.Source)) }

func (r *replay) promised(x orders.Repeat) bool { return x.First.Promise == samplers.Shuffles }

func (r *replay) trains(x orders.Repeat) bool {
	return x.First.Role == timeline.Train && x.Again.Role == timeline.Train
}

func (r *replay) ended(x orders.Repeat) bool { return x.All }

// rate a repeat: 1 more for each excuse that it leaves no room for.
func (r *replay) rate(x orders.Repeat) int {
	n := 1
	for _, excluded := range []func(*replay, orders.Repeat) bool{
		(*replay).sameData, (*replay).promised, (*replay).trains, (*replay).ended,
	} {
		if excluded(r, x) {
			n++
		}
	}
	return n
}

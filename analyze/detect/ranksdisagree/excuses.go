package ranksdisagree

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
)

// doubt is an excuse that nothing excludes.
type doubt int

const (
	separate   doubt = iota // the ranks may train by themselves
	ownSampler              // the program's own class may deal out otherwise
	ownData                 // ranks may have data of their own
	partners                // a list may be something else than the samples
	mixed                   // samples may be put together of others
)

var excuses = []detect.Excuse{
	{Text: "these ranks have trainings of their own (ensemble members).", Excluded: without(separate)},
	{Text: "the sampler, which is the program's own, deals out in another way.", Excluded: without(ownSampler)},
	{Text: "each rank is meant to draw from data of its own, and no sample has to come once in each pass.", Excluded: without(ownData)},
	{Text: "this list is not what an index stands for (partners for mixing, an order of the rank's own).", Excluded: without(partners)},
	{Text: "each rank puts other samples together at an index (mixes, pairs).", Excluded: without(mixed)},
}

func without(d doubt) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool { return !slices.Contains(f.Facts.([]doubt), d) }
}

package shardduplicateranks

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// doubt is an excuse that nothing excludes.
type doubt int

const (
	oneModel      doubt = iota // the ranks may hold parts of one
	otherContents              // an index may be another sample on another rank
	untrained                  // nobody was seen to train on it
	byChance                   // too few samples were compared
	ownPart                    // each rank may be meant to have one
	repeated                   // the program's own sampler may mean it
	byRank                     // a memory, or a labelled set, that each rank samples by itself
	inSteps                    // the training may count steps, not epochs
)

var excuses = []detect.Excuse{
	{Text: "these ranks hold parts of one model and must see the same data (tensor, pipeline or context parallel), or are trainings of " +
		"their own.", Excluded: without(oneModel)},
	{Text: "a number is another sample on another rank.", Excluded: without(otherContents)},
	{Text: "nothing is trained on these samples.", Excluded: without(untrained)},
	{Text: "the few samples that were compared are the same by chance, or are files that several ranks are given on purpose.",
		Excluded: without(byChance)},
	{Text: "each rank is meant to have a part of its own, whatever the others have.", Excluded: without(ownPart)},
	{Text: "the sampler is meant to hand out the same on all ranks.", Excluded: without(repeated)},
	{Text: "each rank is meant to draw from this by itself, beside the data that are dealt out: a replay memory, a small labelled set.",
		Excluded: without(byRank)},
	{Text: "each rank is meant to go through all of the data in an order of its own, and the training counts steps, not epochs.",
		Excluded: without(inSteps)},
}

func without(d doubt) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool { return !slices.Contains(f.Facts.([]doubt), d) }
}

// ownDraws is what excuses ranks that go through the same samples, each in an
// order of its own. Nobody wants that each time all ranks are given the very same
// ones: then it is none.
func (v *verdict) ownDraws(p *pair) (all []doubt) {
	if p.twins != nil && !p.twins.Scattered || p.inStep() {
		return nil
	}
	a, b := p.a.Loader, p.b.Loader
	if dealsOut(a) || dealsOut(b) {
		all = append(all, byRank)
	}
	if !epochs(a) || !epochs(b) {
		all = append(all, inSteps)
	}
	return all
}

// dealsOut reports whether a rank has another loader that it trains on, or may,
// and that is not left to each rank: where none is, they have all been forgotten.
func dealsOut(l *timeline.Loader) bool {
	return slices.ContainsFunc(l.Process.Loaders, func(other *timeline.Loader) bool {
		return other != l && other.Role != timeline.Eval && samplers.SharingOf(other.First()) != samplers.EachItsOwn &&
			slices.ContainsFunc(other.Passes, func(p *timeline.Pass) bool { return p.Delivered > 0 })
	})
}

// epochs reports whether a training goes to the end of its data, and ends there:
// one that counts steps goes through them again and again, and is broken off.
func epochs(l *timeline.Loader) bool {
	return len(l.Passes) > 0 && l.Passes[len(l.Passes)-1].Exhausted
}

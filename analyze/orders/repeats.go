package orders

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/values"
)

// Repeat is a pass in the order of an earlier one.
type Repeat struct {
	First, Again *Pass
	Samples      int  // that were compared
	All          bool // both to their ends; else only the samples that both loops took
	Shuffled     bool // the order looks like a shuffled one
	Origins      bool // the same samples of the datasets inside of Subset and ConcatDataset
	Elsewhere    bool // other samples of these, at the same indices: folds
}

// enough samples of two passes that are the same, or all others: an index stands
// for one sample in both, or for two.
const enough = 8

// SameData reports whether both passes are known to be over the same data: over one
// dataset object, over the same samples of one inside of two Subsets, or over
// contents that are equal wherever they were compared. A DataLoader that is made
// anew for each pass may be over other data each time.
func (r Repeat) SameData(contents *values.Contents) bool {
	a, b := r.First.Object, r.Again.Object
	if a == b || r.Origins || a.DatasetID != 0 && a.DatasetID == b.DatasetID {
		return true
	}
	same, other := r.contents(contents)
	return same >= enough && other == 0
}

// OtherData reports whether what is at an index was another sample in each of the
// two passes, wherever that was compared.
func (r Repeat) OtherData(contents *values.Contents) bool {
	same, other := r.contents(contents)
	return same == 0 && other >= enough
}

func (r Repeat) contents(c *values.Contents) (same, other int) {
	twice, changed := values.CompareByIndex(c.Samples(r.First.Pass), c.Samples(r.Again.Pass))
	return len(twice), len(changed)
}

// InARow reports whether the passes of a training go through one order a few times,
// one after another, and then through another one: sweeps that may be meant to be
// in pairs. One order in all passes is not such, nor one that comes again later.
func InARow(training []*Pass, repeats []Repeat) bool {
	if len(repeats) == 0 || len(repeats) == len(training)-1 {
		return false
	}
	for _, r := range repeats {
		i := slices.Index(training, r.Again)
		if before := training[i-1]; before != r.First && !slices.ContainsFunc(repeats, func(o Repeat) bool {
			return o.Again == before && o.First == r.First
		}) {
			return false
		}
	}
	return true
}

// Repeats are the passes of one training that go through the data as an earlier
// one did.
func Repeats(training []*Pass) []Repeat {
	return RepeatsThat(training, func(Repeat) bool { return true })
}

// RepeatsThat are the same, each with the first earlier pass of its order; or
// with the latest, if the first one does not count and the latest does.
func RepeatsThat(training []*Pass, counts func(Repeat) bool) (repeats []Repeat) {
	for i, q := range training {
		if r, ok := repeat(training[:i], q, counts); ok {
			repeats = append(repeats, r)
		}
	}
	return repeats
}

// repeat is a pass and an earlier one of its order.
func repeat(earlier []*Pass, q *Pass, counts func(Repeat) bool) (Repeat, bool) {
	for k, p := range earlier {
		first, same := compare(p, q)
		if !same {
			continue
		}
		if counts(first) {
			return first, true
		}
		for _, p := range slices.Backward(earlier[k+1:]) {
			if latest, same := compare(p, q); same && counts(latest) {
				return latest, true
			} else if same {
				break
			}
		}
		return first, true
	}
	return Repeat{}, false
}

// Shuffled are the repeats of an order that looks like a shuffled one.
func Shuffled(repeats []Repeat) []Repeat {
	return slices.DeleteFunc(slices.Clone(repeats), func(r Repeat) bool { return !r.Shuffled })
}

// compare two passes, as far as both loops went.
func compare(p, q *Pass) (r Repeat, same bool) {
	if p.Batches == q.Batches && !p.Equal(q.Beginning) {
		return Repeat{}, false // most pairs, and there are many where a training has thousands of short passes
	}
	a, b, all := p.Beginning, q.Beginning, true
	if !p.All || !q.All {
		if !p.All && p.Delivered < q.Delivered {
			return Repeat{}, false // a warm-up, a search for the learning rate
		}
		known := false
		a, b, known = batches.Common(p.Sequence, q.Sequence, min(p.Batches, q.Batches))
		if !known || a.Batches < 2 || min(a.Distinct, b.Distinct) < batches.Enough {
			return Repeat{}, false
		}
		all = p.Delivered == q.Delivered && p.All == q.All
	}
	return Repeat{First: p, Again: q, Samples: a.Samples, All: all, Shuffled: a.Shuffled(), Origins: a.SameOrigins(b),
		Elsewhere: a.OtherPlaces(b)}, a.Equal(b)
}

package samples

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// Overlap is one pass of a loader on all ranks that ran it, and which samples
// they had in common. Counts are of samples that were looked at.
type Overlap struct {
	Number   int     // of the pass
	Ranks    []*Pass // by rank
	Distinct []int   // different samples of each
	Steps    int     // different samples in each step of all ranks together, summed
	Samples  int     // of all ranks

	n      int
	common []Common

	first []Given // of each rank, of one sample
	steps []int   // batches that it came in
}

// Common is what two ranks had in common in a pass.
type Common struct {
	Samples int
	InStep  int // of them, in the batch of the same number
	Inner   int // of them, in no rank's last batch: those are no padding
	Example Example
}

// Example is one sample that two ranks had.
type Example struct {
	Index          int64
	BatchA, BatchB int
}

// Of two ranks, by their place in Ranks.
func (o *Overlap) Of(a, b int) *Common {
	if a > b {
		a, b = b, a
	}
	return &o.common[a*o.n+b]
}

// mostCells bounds the pairs of ranks, of all passes, that are kept; mostRanks
// those of one pass.
const (
	mostCells = 4 << 20
	mostRanks = 2048
)

// Overlaps of the passes of one loader. Samples of two ranks are the same where
// they are of one dataset, at the same index of it and of the loader's dataset: a
// Subset or a ConcatDataset that has one sample in several places has it there on
// purpose.
func (j *Attribution) Overlaps(ranks timeline.Ranks) []*Overlap {
	overlaps, slots := j.overlapping(ranks)
	for _, o := range overlaps {
		o.n = len(o.Ranks)
		o.Distinct, o.common = make([]int, o.n), make([]Common, o.n*o.n)
	}
	if len(overlaps) > 0 {
		j.count(ranks.ID(), overlaps, slots)
	}
	return overlaps
}

// slot is the place of a pass: the overlap that it is in, and which rank of it.
type slot struct {
	overlap *Overlap
	rank    int
}

// overlapping is the passes that several ranks ran, by number, as far as mostCells
// goes.
func (j *Attribution) overlapping(ranks timeline.Ranks) (overlaps []*Overlap, slots map[int]slot) {
	var of []int // passes
	for i, p := range j.Passes {
		if p.Loader.ID == ranks.ID() && !p.Abandoned && p.Loader.Rank() >= 0 {
			of = append(of, i)
		}
	}
	slots = map[int]slot{}
	cells := 0
	for len(of) > 0 {
		n := 1 // they are by number
		for n < len(of) && j.Passes[of[n]].Number == j.Passes[of[0]].Number {
			n++
		}
		some := of[:min(n, mostRanks)]
		of = of[n:]
		if len(some) < 2 {
			continue
		}
		if cells += len(some) * len(some); cells > mostCells {
			break
		}
		o := &Overlap{Number: j.Passes[some[0]].Number}
		for rank, i := range some {
			slots[i] = slot{o, rank}
			o.Ranks = append(o.Ranks, j.Passes[i])
		}
		overlaps = append(overlaps, o)
	}
	return overlaps, slots
}

func (j *Attribution) count(loader int, overlaps []*Overlap, slots map[int]slot) {
	var same []Given // of one pass of the loader, on all ranks
	for origin, given := range j.eachOf(loader) {
		var of *Overlap
		var at uint32
		for _, g := range given { // by At, then pass
			s, ok := slots[g.Pass]
			if !ok {
				continue
			}
			if len(same) > 0 && (s.overlap != of || g.At != at) {
				of.add(origin.Index, same, slots)
				same = same[:0]
			}
			of, at = s.overlap, g.At
			same = append(same, g)
		}
		if len(same) > 0 {
			of.add(origin.Index, same, slots)
			same = same[:0]
		}
	}
}

// add a sample that was given to some ranks, by rank.
func (o *Overlap) add(index int64, given []Given, slots map[int]slot) {
	o.Samples += len(given)
	o.first, o.steps = o.first[:0], o.steps[:0]
	for i, g := range given {
		o.steps = append(o.steps, g.Batch)
		if i == 0 || given[i-1].Pass != g.Pass {
			o.first = append(o.first, g)
		}
	}
	slices.Sort(o.steps)
	o.Steps += len(slices.Compact(o.steps))
	for i, x := range o.first {
		a := slots[x.Pass].rank
		o.Distinct[a]++
		for _, y := range o.first[i+1:] {
			b := slots[y.Pass].rank
			c := o.Of(a, b)
			if c.Samples == 0 {
				c.Example = Example{index, x.Batch, y.Batch}
			}
			c.Samples++
			if x.Batch == y.Batch {
				c.InStep++
			}
			if x.Batch < o.Ranks[a].Delivered-1 && y.Batch < o.Ranks[b].Delivered-1 {
				c.Inner++
			}
		}
	}
}

// DistinctOf is how many different samples a rank was given.
func (o *Overlap) DistinctOf(p *timeline.Pass) int {
	return o.Distinct[slices.IndexFunc(o.Ranks, func(r *Pass) bool { return r.Pass == p })]
}

// Once reports whether a rank was given each of its samples once.
func (o *Overlap) Once(p *timeline.Pass) bool {
	i := slices.IndexFunc(o.Ranks, func(r *Pass) bool { return r.Pass == p })
	return o.Distinct[i] == o.Ranks[i].Samples
}

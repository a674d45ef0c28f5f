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

// mostCells bounds the pairs of ranks, of all passes, that are kept.
const mostCells = 4 << 20

// Overlaps of the passes of one loader. Samples of two ranks are the same where
// they are of one dataset, at the same index of it and of the loader's dataset: a
// Subset or a ConcatDataset that has one sample in several places has it there on
// purpose.
func (j *Attribution) Overlaps(ranks timeline.Ranks) []*Overlap {
	var overlaps []*Overlap
	slots := map[int][2]int{} // by pass in Judged.Passes: overlap, rank in it
	cells := 0
	for i, p := range j.Passes {
		if p.Loader.ID != ranks.ID() || p.Abandoned || p.Loader.Rank() < 0 {
			continue
		}
		if n := len(overlaps); n == 0 || overlaps[n-1].Number != p.Number {
			if n > 0 {
				cells += len(overlaps[n-1].Ranks) * len(overlaps[n-1].Ranks)
			}
			if cells > mostCells {
				break
			}
			overlaps = append(overlaps, &Overlap{Number: p.Number})
		}
		o := overlaps[len(overlaps)-1]
		slots[i] = [2]int{len(overlaps) - 1, len(o.Ranks)}
		o.Ranks = append(o.Ranks, p)
	}
	for _, o := range overlaps {
		o.n = len(o.Ranks)
		o.Distinct, o.common = make([]int, o.n), make([]Common, o.n*o.n)
	}
	j.count(overlaps, slots)
	return slices.DeleteFunc(overlaps, func(o *Overlap) bool { return o.n < 2 })
}

func (j *Attribution) count(overlaps []*Overlap, slots map[int][2]int) {
	var same []Given // of one pass of the loader, on all ranks
	for origin, given := range j.Each() {
		index := origin.Index
		at := -1
		for i, g := range given {
			slot, ok := slots[g.Pass]
			if ok {
				same, at = append(same, g), slot[0]
			}
			last := i == len(given)-1
			if !last {
				next, ok := slots[given[i+1].Pass]
				last = given[i+1].At != g.At || ok && len(same) > 0 && next[0] != at
			}
			if last && len(same) > 0 {
				overlaps[at].add(index, same, slots)
				same = same[:0]
			}
		}
	}
}

// add a sample that was given to some ranks, by rank.
func (o *Overlap) add(index int64, given []Given, slots map[int][2]int) {
	steps := 0
	for i := range given {
		a := slots[given[i].Pass][1]
		o.Samples++
		if !slices.ContainsFunc(given[:i], func(g Given) bool { return g.Batch == given[i].Batch }) {
			steps++
		}
		if i > 0 && given[i-1].Pass == given[i].Pass {
			continue
		}
		o.Distinct[a]++
		for k := i + 1; k < len(given); k++ {
			b := slots[given[k].Pass][1]
			if given[k-1].Pass == given[k].Pass || a == b {
				continue
			}
			c := o.Of(a, b)
			if c.Samples == 0 {
				c.Example = Example{index, given[i].Batch, given[k].Batch}
			}
			c.Samples++
			if given[i].Batch == given[k].Batch {
				c.InStep++
			}
			if given[i].Batch < o.Ranks[a].Delivered-1 && given[k].Batch < o.Ranks[b].Delivered-1 {
				c.Inner++
			}
		}
	}
	o.Steps += steps
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

package splitleak

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
)

// copies are samples of an evaluation that were not trained on themselves, and
// whose content was: rows that were copied before the split, or that two dataset
// objects have.
type copies struct {
	n       int // different samples
	looked  int // different samples of the evaluation that were looked at, whole
	trained int // and of its training
	first   [2]looked
	apart   bool // the copies lie in another dataset object
	sure    bool // they were made; they do not come of values that are few, or that come again by themselves
	from    int  // where one dataset has them: the indices of its copies, the last one too
	to      int
}

// copied finds the copies of what was trained on before in an evaluation.
func (e *evaluation) copied(mine, theirs []looked, leaks map[uint32]bool, j *samples.Attribution) (c copies) {
	of, counted := map[digests.Sum]looked{}, map[uint32]bool{}
	for _, x := range theirs {
		if !x.Whole() || !e.precedes(j.Passes[x.given.Pass], x.given.Batch, 0) {
			continue
		}
		if !counted[x.serial] {
			counted[x.serial] = true
			c.trained++
		}
		if _, ok := of[x.Content]; !ok {
			of[x.Content] = x
		}
	}
	clear(counted)
	found := map[digests.Sum]bool{}
	for _, x := range mine {
		if !x.Whole() || counted[x.serial] {
			continue
		}
		counted[x.serial] = true
		c.looked++
		t, ok := of[x.Content]
		if !ok || t.serial == x.serial || leaks[x.serial] {
			continue
		}
		if c.n++; c.n == 1 {
			c.first, c.apart = [2]looked{x, t}, x.origin.Dataset != t.origin.Dataset
		}
		found[x.Content] = true
	}
	if len(found) < enough {
		return c
	}
	if both := append(slices.Clone(mine), theirs...); c.apart {
		c.sure = unique(both)
	} else {
		c.from, c.to, c.sure = appended(both, c.first[0].origin.Dataset)
	}
	return c
}

// row is a sample of a dataset.
type row struct {
	index   int64
	content digests.Sum
}

// rowsOf a dataset that were looked at, by index. Those with several contents, which
// are augmented, are left out.
func rowsOf(all []looked, dataset int) (list []row) {
	for _, x := range all {
		if x.Whole() && x.origin.Dataset == dataset {
			list = append(list, row{x.origin.Index, x.Content})
		}
	}
	slices.SortFunc(list, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.index, b.index), slices.Compare(a.content[:], b.content[:]))
	})
	return slices.Compact(list)
}

// appended reports whether all copies of a dataset lie in one stretch of indices,
// in which there is nothing else, and many rows have none: what was oversampled
// before the split was put behind it. Values of which there are few come again
// all over, and what is periodic comes again as a whole.
func appended(all []looked, dataset int) (from, to int, sure bool) {
	list := rowsOf(all, dataset)
	first, again := map[digests.Sum]int64{}, []int{} // places in list
	doubled := map[digests.Sum]bool{}
	for i, r := range list {
		if _, ok := first[r.content]; ok {
			again = append(again, i)
			doubled[r.content] = true
		} else {
			first[r.content] = r.index
		}
	}
	if len(again) < enough {
		return 0, 0, false
	}
	a, b := again[0], again[len(again)-1]
	single := len(first) - len(doubled)
	return int(list[a].index), int(list[b].index), b-a+1 == len(again) && 4*single >= len(first) && single >= enough
}

// unique reports whether contents come but once in each of the datasets: then those
// that two have in common are the same rows.
func unique(all []looked) bool {
	of := map[int]bool{}
	for _, x := range all {
		of[x.origin.Dataset] = true
	}
	for dataset := range of {
		list := rowsOf(all, dataset)
		once := map[digests.Sum]bool{}
		for _, r := range list {
			once[r.content] = true
		}
		if 10*(len(list)-len(once)) > len(list) {
			return false
		}
	}
	return true
}

// all reports whether it is copies alone that are evaluated, or copies of all that
// was trained on: training's own samples through another dataset object.
func (c *copies) all() bool { return c.n == c.looked || c.n >= c.trained }

// leak reports whether they are to be told of.
func (c *copies) leak() bool { return c.sure && !c.all() }

// complete reports whether all that is evaluated was compared with all that was
// trained on, by what it contains.
func (e *evaluation) complete() bool {
	return e.samples > 0 && e.trained > 0 && e.copies.looked == e.samples && e.copies.trained == e.trained
}

package leak

import (
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// enough leaked samples had another content in training: an index is not one
// sample there and here.
const enough = 8

// digests of a pass, by the index in the dataset of its loader.
type digests map[int64]*values.Sample

// compare what was trained on with what is evaluated, at the indices that the
// evaluations have in common with their training. A dataset that is told whether
// it trains may give the beginning of a user's history then, and what follows it
// in an evaluation.
func compare(t *timeline.Timeline, c *values.Contents, j *samples.Attribution, all []*evaluation) {
	read := map[int]digests{}
	of := make([][]*evaluation, len(j.Passes)) // of which a pass is the training
	is := make([][]*evaluation, len(j.Passes)) // that a pass is
	numbers := map[*samples.Pass]int{}
	for i, p := range j.Passes {
		numbers[p] = i
	}
	look := func(n int) {
		if read[n] != nil {
			return
		}
		read[n] = digests{}
		list := c.Samples(t, j.Passes[n].Pass)
		for i := range list {
			read[n][list[i].Index] = &list[i]
		}
	}
	some := false
	for _, e := range all {
		if len(e.leaked) == 0 {
			continue
		}
		look(e.number)
		is[e.number] = append(is[e.number], e)
		for _, p := range e.phase {
			some = true
			look(numbers[p])
			of[numbers[p]] = append(of[numbers[p]], e)
		}
	}
	if !some {
		return
	}
	evaluated := map[*evaluation]*values.Sample{} // of one origin
	for _, given := range j.Each() {
		clear(evaluated)
		for _, g := range given {
			for _, e := range is[g.Pass] {
				evaluated[e] = read[g.Pass][int64(g.At)]
			}
		}
		for _, g := range given {
			for _, e := range of[g.Pass] {
				mine, theirs := evaluated[e], read[g.Pass][int64(g.At)]
				if mine == nil || theirs == nil {
					continue
				}
				switch same, ok := mine.Same(theirs); {
				case ok && same:
					e.alike++
				case ok:
					e.unlike++
				}
			}
		}
	}
}

// other reports whether the indices that were trained on gave something else than
// in the evaluation, wherever that was compared.
func (e *evaluation) other() bool { return e.alike == 0 && e.unlike >= enough }

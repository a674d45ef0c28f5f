package splitleak

import (
	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
)

// enough leaked samples had another content in training: an index is not one
// sample there and here.
const enough = 8

// contents of passes, by the index in the dataset of their loader.
type contents map[int]map[int64]digests.Digest

// at is what a pass was given; nil: that was not looked at.
func (c contents) at(g samples.Given) *digests.Digest {
	d, ok := c[g.Pass][int64(g.At)]
	if !ok {
		return nil
	}
	return &d
}

// compare what was trained on with what is evaluated, at the indices that the
// evaluations have in common with their training. A dataset that is told whether
// it trains may give the beginning of a user's history then, and what follows it
// in an evaluation.
func compare(j *samples.Attribution, all []*evaluation, numbers map[*samples.Pass]int) {
	read := contents{}
	look := func(n int) {
		if read[n] == nil {
			read[n] = j.Contents(j.Passes[n].Pass)
		}
	}
	of := map[int][]*evaluation{} // of which a pass is the training
	is := map[int][]*evaluation{} // that a pass is
	for _, e := range all {
		if e.leaked == 0 {
			continue
		}
		look(e.number)
		is[e.number] = append(is[e.number], e)
		for _, p := range e.phase {
			look(numbers[p])
			of[numbers[p]] = append(of[numbers[p]], e)
		}
	}
	if len(of) == 0 {
		return
	}
	evaluated := map[*evaluation]*digests.Digest{} // of one origin
	for _, given := range j.Each() {
		clear(evaluated)
		for _, g := range given {
			for _, e := range is[g.Pass] {
				evaluated[e] = read.at(g)
			}
		}
		for _, g := range given {
			for _, e := range of[g.Pass] {
				e.compare(evaluated[e], read.at(g))
			}
		}
	}
}

// compare a sample of the evaluation with what training had at its index.
func (e *evaluation) compare(mine, theirs *digests.Digest) {
	if mine == nil || theirs == nil {
		return
	}
	switch same, ok := mine.Same(theirs); {
	case ok && same:
		e.alike++
	case ok:
		e.unlike++
	}
}

// other reports whether the indices that were trained on gave something else than
// in the evaluation, nearly wherever that was compared.
func (e *evaluation) other() bool { return e.unlike >= enough && !e.confirmed() }

// confirmed reports whether what was compared is the same, but for what training
// has augmented: one of ten at least.
func (e *evaluation) confirmed() bool { return e.alike > 0 && 10*e.alike >= e.alike+e.unlike }

package splitleak

import (
	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// enough leaked samples had another content in training: an index is not one
// sample there and here.
const enough = 8

// looked is a sample that a pass was given, and what it contained.
type looked struct {
	*digests.Digest
	origin samples.Origin
	serial uint32
	given  samples.Given
}

// contents are what was looked at of passes, by number.
type contents map[int][]looked

// compare what was trained on with what is evaluated: at the indices that the
// evaluations have in common with their training, and wherever the same content
// comes at others. A dataset that is told whether it trains may give the beginning
// of a user's history then, and what follows it in an evaluation.
func compare(j *samples.Attribution, all []*evaluation, numbers map[*samples.Pass]int) {
	seen := read(j, all, numbers)
	for _, e := range all {
		mine := map[uint32]*digests.Digest{}
		for _, x := range seen[e.number] {
			mine[x.serial] = x.Digest
		}
		leaks := map[uint32]bool{}
		for _, n := range e.leaks {
			leaks[n] = true
		}
		var trained []looked
		for _, p := range e.phase {
			trained = append(trained, seen[numbers[p]]...)
		}
		for _, x := range trained {
			if d := mine[x.serial]; d != nil && leaks[x.serial] {
				e.compare(d, x.Digest)
			}
		}
		if e.leaked > 0 {
			e.mode, _ = j.ModeOf(e.dataset, e.pass.Pass, e.trainedIn(j))
		}
		e.copies = e.copied(seen[e.number], trained, leaks, j)
	}
}

// trainedIn is the passes of its process in which the leaked samples were trained on
// first.
func (e *evaluation) trainedIn(j *samples.Attribution) (list []*timeline.Pass) {
	for n := range e.in {
		if p := j.Passes[n].Pass; p.Loader.Process == e.pass.Loader.Process {
			list = append(list, p)
		}
	}
	return list
}

// read the contents of all passes that evaluations are about.
func read(j *samples.Attribution, all []*evaluation, numbers map[*samples.Pass]int) contents {
	digested := make([]map[int64]digests.Digest, len(j.Passes))
	look := func(n int) {
		if digested[n] == nil {
			digested[n] = j.Contents(j.Passes[n].Pass)
		}
	}
	for _, e := range all {
		look(e.number)
		for _, p := range e.phase {
			look(numbers[p])
		}
	}
	seen, serial := contents{}, uint32(0)
	for origin, given := range j.Each() {
		serial++
		for _, g := range given {
			if d, ok := digested[g.Pass][int64(g.At)]; ok {
				seen[g.Pass] = append(seen[g.Pass], looked{&d, origin, serial, g})
			}
		}
	}
	return seen
}

// compare a sample of the evaluation with what training had at its index.
func (e *evaluation) compare(mine, theirs *digests.Digest) {
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

package traces

import (
	"fmt"
	"slices"
)

// losses counts what is wrong with one table of one part: a Problem for each
// kind, however often it is met. It keeps account of the rows, so that a loss of
// unknown size gets its size from the number of the row that comes after it.
type losses struct {
	part  *Part
	table string
	list  []loss
	next  uint64 // number of the row that should come
	known uint64 // lost rows since the last good batch, at places that count theirs
}

type loss struct {
	Problem
	open    bool // there was a place since the last good batch that does not count its rows
	unknown bool // there was one before it, and no row after it told
}

// add counts a place; lost -1: it does not tell how many rows there were.
func (l *losses) add(file string, offset int64, kind ProblemKind, text string, lost int64) {
	i := slices.IndexFunc(l.list, func(x loss) bool { return x.Kind == kind })
	if i < 0 {
		i = len(l.list)
		l.list = append(l.list, loss{Problem: Problem{l.part, l.table, file, offset, kind, text, 0, 0}})
	}
	x := &l.list[i]
	x.Places++
	if lost < 0 {
		x.open = true
		return
	}
	x.LostRows += lost
	l.known += uint64(lost)
}

// account compares the number of the row that comes with the one that should:
// a difference that nothing explains is a loss of its own.
func (l *losses) account(seq uint64) {
	gap := int64(seq) - int64(l.next) - int64(l.known)
	first := slices.IndexFunc(l.list, func(x loss) bool { return x.open })
	switch {
	case gap > 0 && first >= 0: // it stands for all whose share is unknown
		l.list[first].LostRows += gap
	case gap > 0:
		l.add("", int64(l.next), Missing, fmt.Sprintf("rows %d to %d are not in the trace", l.next+l.known, seq-1), gap)
	}
	for i := range l.list {
		x := &l.list[i]
		x.unknown = x.unknown || x.open && gap < 0
		x.open = false
	}
	l.next, l.known = seq, 0
}

func (l *losses) problems() []Problem {
	list := make([]Problem, len(l.list))
	for i, x := range l.list {
		list[i] = x.Problem
		if x.open || x.unknown {
			list[i].LostRows = -1
		}
	}
	return list
}

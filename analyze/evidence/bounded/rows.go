// Package bounded keeps rows of which there may be too many: the same ones
// everywhere, so that what is left can still be compared.
package bounded

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/hash"
)

// Rows is rows of which no more than a limit are kept: those whose hash is below
// 2^64/2^k. The hash is of a number that makes a sample the same one everywhere,
// so that a sample is kept in all passes, on all ranks, or nowhere; k is the
// smallest with which the rest fits, whatever the order and grouping in which
// rows came and were merged.
type Rows[T any] struct {
	list   []T
	limit  int
	halved uint // k
	number func(*T) uint64
}

// New is no rows yet.
func New[T any](limit int, number func(*T) uint64) Rows[T] {
	return Rows[T]{limit: limit, number: number}
}

// Takes reports whether a row of this number is kept.
func (r *Rows[T]) Takes(number uint64) bool { return hash.Low(number, r.halved) }

// Add a row that is taken.
func (r *Rows[T]) Add(row T) {
	if len(r.list) == cap(r.list) { // doubled, but no further than to the limit
		r.list = slices.Grow(r.list, min(max(len(r.list), 1024), r.limit+1-len(r.list)))
	}
	r.list = append(r.list, row)
	for len(r.list) > r.limit && r.halved <= 64 {
		r.thin(r.halved + 1)
	}
}

// Merge takes over what others are. They are not used afterwards.
func (r *Rows[T]) Merge(o *Rows[T]) {
	if o.halved > r.halved {
		r.thin(o.halved)
	}
	for i := range o.list {
		if r.Takes(r.number(&o.list[i])) {
			r.Add(o.list[i])
		}
	}
	o.list = nil
}

func (r *Rows[T]) thin(halved uint) {
	r.halved = halved
	r.list = slices.DeleteFunc(r.list, func(row T) bool { return !hash.Low(r.number(&row), halved) })
}

// All is the rows that are kept.
func (r *Rows[T]) All() []T { return r.list }

// Release gives the rows away.
func (r *Rows[T]) Release() []T {
	all := r.list
	r.list = nil
	return all
}

// Halved is how often one half of all numbers was left out.
func (r *Rows[T]) Halved() uint { return r.halved }

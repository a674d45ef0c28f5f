package samples

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// bounded is rows of which no more than a limit are kept: those whose hash is
// below 2^64/2^k. The hash is of what makes a sample the same one everywhere, so
// that a sample is kept in all passes, on all ranks, or nowhere; k is the
// smallest with which the rest fits, whatever the order and grouping in which
// rows came and were merged.
type bounded[T any] struct {
	rows  []T
	limit int
	k     uint
	hash  func(*T) uint64
}

// takes reports whether a row with this hash is kept.
func (b *bounded[T]) takes(hash uint64) bool { return hash>>(64-b.k) == 0 }

// add a row that is taken.
func (b *bounded[T]) add(row T) {
	if len(b.rows) == cap(b.rows) { // doubled, but no further than to the limit
		b.rows = slices.Grow(b.rows, min(max(len(b.rows), 1024), b.limit+1-len(b.rows)))
	}
	b.rows = append(b.rows, row)
	if len(b.rows) > b.limit {
		b.thin()
	}
}

func (b *bounded[T]) merge(o *bounded[T]) {
	if o.k > b.k {
		b.k = o.k
		b.filter()
	}
	for i := range o.rows {
		if b.takes(b.hash(&o.rows[i])) {
			b.add(o.rows[i])
		}
	}
	o.rows = nil
}

// thin halves what is kept until it fits.
func (b *bounded[T]) thin() {
	for len(b.rows) > b.limit && b.k < 64 {
		b.k++
		b.filter()
	}
}

func (b *bounded[T]) filter() {
	kept := b.rows[:0]
	for i := range b.rows {
		if b.takes(b.hash(&b.rows[i])) {
			kept = append(kept, b.rows[i])
		}
	}
	b.rows = kept
}

// told says what was left out, or is "".
func (b *bounded[T]) told(what string) string {
	if b.k == 0 {
		return ""
	}
	return fmt.Sprintf("one in %d %s was looked at (hash below 2^%d)", uint64(1)<<min(b.k, 63), what, 64-b.k)
}

func words(b []byte) [2]uint64 {
	return [2]uint64{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

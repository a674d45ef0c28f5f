package batches

import (
	"github.com/dptrace/dptrace/analyze/hash"
	"github.com/dptrace/dptrace/traces"
)

// contents is which samples one pass asked for: enough to say whether two passes
// asked for the same ones.
type contents struct {
	samples uint64
	sum     uint64               // of hashed indices: the same in any order
	first   [firstBatches]uint64 // of each of the first batches, hash of its first row; 0: not seen
}

// firstBatches is how many batches are kept one by one.
const firstBatches = 32

// add a row of indices, or of keys that are no integers.
func (c *contents) add(r *traces.BatchPut) {
	switch {
	case len(r.Indices) > 0:
		c.samples += uint64(len(r.Indices))
		for _, i := range r.Indices {
			c.sum += hash.Mix(uint64(i))
		}
	case r.Keys != "":
		c.samples++
		c.sum += keysHash(r.Keys)
	default:
		return
	}
	if r.First == 0 && r.Batch < firstBatches {
		c.first[r.Batch] = rowHash(r) | 1
	}
}

// rowHash is one of the indices of a row in their order, or of its keys.
func rowHash(r *traces.BatchPut) (h uint64) {
	if len(r.Indices) == 0 {
		return keysHash(r.Keys)
	}
	for _, i := range r.Indices {
		h = hash.Mix(h ^ hash.Mix(uint64(i)))
	}
	return h
}

// keysHash is FNV-1a.
func keysHash(keys string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(keys) {
		h = (h ^ uint64(keys[i])) * 1099511628211
	}
	return hash.Mix(h)
}

// Likeness of what two passes asked for.
type Likeness int

const (
	Unknown Likeness = iota // an IterableDataset, or the rows are lost
	Different
	Same
)

// Compare two passes. They asked for the same samples if they have all of them in
// common, in any order, or begin with the same batches (a pass that is broken off
// was ahead of its deliveries by an unknown number of them).
func (q *Requests) Compare(other *Requests) Likeness {
	a, b := &q.digest, &other.digest
	if a.samples == 0 || b.samples == 0 {
		return Unknown
	}
	if a.samples == b.samples && a.sum == b.sum {
		return Same
	}
	result := Unknown
	for i, x := range a.first {
		switch y := b.first[i]; {
		case x == 0 || y == 0:
		case x != y:
			return Different
		default:
			result = Same
		}
	}
	return result
}

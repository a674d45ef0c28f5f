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

// add the hash of an index; row is that of those of its row before it.
func (c *contents) add(row, h uint64) uint64 {
	c.sum += h
	c.samples++
	return hash.Mix(row ^ h)
}

// addKeys takes a row whose keys are no integers.
func (c *contents) addKeys(r *traces.BatchPut) {
	if r.Keys == "" {
		return
	}
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(r.Keys) {
		h = (h ^ uint64(r.Keys[i])) * 1099511628211
	}
	h = hash.Mix(h)
	c.sum += h
	c.samples++
	c.row(r, h)
}

// row ends a row, of which this is the hash.
func (c *contents) row(r *traces.BatchPut, h uint64) {
	if r.First == 0 && r.Batch < firstBatches {
		c.first[r.Batch] = h | 1
	}
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

package batches

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/hash"
)

// mostKept is how many indices of a pass are kept: 128 KB. Beyond that those
// whose hash is low: the same ones on all ranks.
const mostKept = 1 << 14

// keep indices whose hash is low.
func (q *Requests) keep(indices []int64) {
	for _, i := range indices {
		if hash.Low(uint64(i), q.zeros) {
			q.kept = append(q.kept, i)
		}
	}
	for len(q.kept) > mostKept && q.zeros < 63 {
		q.thin(q.zeros + 1)
	}
}

// thin keeps the indices whose hash begins with so many zeros.
func (q *Requests) thin(zeros uint) {
	q.zeros = zeros
	q.kept = slices.DeleteFunc(q.kept, func(i int64) bool { return !hash.Low(uint64(i), zeros) })
}

// Kept reports whether the indices are known that Cover counts: those of the
// first passes of a loader whose sampler deals a dataset out to ranks.
func (q *Requests) Kept() bool { return len(q.kept) > 0 }

// Coverage is how often ranks together asked for each index below a length.
type Coverage struct {
	Length int64
	Never  int // indices that no rank asked for
	Often  int // times that one was asked for again
	Of     int // 1: all indices were looked at; n: one of n
}

// Cover counts the indices that the passes of some ranks asked for.
func Cover(length int64, ranks []*Requests) Coverage {
	c := Coverage{Length: length, Of: 1}
	var zeros uint
	samples := int64(0)
	for _, q := range ranks {
		zeros = max(zeros, q.zeros)
		samples += int64(q.Samples)
	}
	c.Of <<= zeros
	seen := map[int64]bool{}
	for _, q := range ranks {
		for _, i := range q.kept {
			switch {
			case i < 0 || i >= length || !hash.Low(uint64(i), zeros):
			case seen[i]:
				c.Often++
			default:
				seen[i] = true
			}
		}
	}
	c.Never = int(below(length, zeros, samples)) - len(seen)
	return c
}

// below is how many numbers below a length have a hash that begins with so many
// zeros. They are counted where the trace has asked for at least half as many
// samples; of a length beyond that, which may be any number, it is the share
// that is to be expected: that most of them were never asked for is certain.
func below(length int64, zeros uint, samples int64) (n int64) {
	length = max(length, 0)
	if zeros == 0 || length/2 > samples {
		return length >> zeros
	}
	for i := range length {
		if hash.Low(uint64(i), zeros) {
			n++
		}
	}
	return n
}

package orders

import (
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// Sequence is what is kept of the order in which one pass asked for samples, in
// bounded memory: a digest of all indices, and digests of its beginnings, for
// passes of which the loop took only the first batches.
type Sequence struct {
	Odd bool // rows are lost, or the keys are no integers: nothing can be said

	now    mark
	batch  uint32 // the one being read
	in     uint32 // its samples so far
	last   int64
	seen   []int64 // the first distinct indices, Enough at most
	head   []int64 // the first indices
	marks  []mark  // after each stride batches
	stride int
	put    uint64 // row of its first batch
}

// mark is a beginning of a sequence.
type mark struct {
	batches, samples int
	digest           [2]uint64 // of the indices in their order; where batches end does not count
	descents         int       // how often an index is smaller than the one before
	jumps            int       // how often it is not the one before plus 1; the first one has to be 0
	distinct         int       // indices, counted up to Enough
}

// marksKept is how many beginnings of a pass are kept: 32 lose less than 1/16
// of a pass that was broken off.
const marksKept = 32

// headKept is how many indices a finding shows.
const headKept = 6

func newSequence(r *traces.BatchPut) *Sequence {
	return &Sequence{stride: 1, put: r.Seq, now: mark{digest: [2]uint64{0x243f6a8885a308d3, 0x13198a2e03707344}}}
}

func (s *Sequence) add(r *traces.BatchPut) {
	switch {
	case len(r.Indices) == 0 || r.Keys != "":
		s.Odd = true
	case s.now.batches == 0 && r.Batch == 0 && r.First == 0:
		s.now.batches = 1
	case r.Batch == s.batch && s.now.batches > 0 && r.First == s.in:
	case r.Batch == s.batch+1 && s.now.batches > 0 && r.First == 0:
		s.mark()
		s.now.batches++
		s.batch, s.in = r.Batch, 0
	default:
		s.Odd = true
	}
	if s.Odd {
		return
	}
	s.in += uint32(len(r.Indices))
	m := &s.now
	for _, i := range r.Indices {
		if m.samples > 0 && i < s.last {
			m.descents++
		}
		if m.samples == 0 && i != 0 || m.samples > 0 && i != s.last+1 {
			m.jumps++
		}
		s.last = i
		if len(s.head) < headKept {
			s.head = append(s.head, i)
		}
		m.samples++
		m.digest[0] = mix(m.digest[0] ^ mix(uint64(i)))
		m.digest[1] = mix(m.digest[1] + 0x9e3779b97f4a7c15*uint64(i))
		if len(s.seen) < Enough && !slices.Contains(s.seen, i) {
			s.seen = append(s.seen, i)
		}
	}
	m.distinct = len(s.seen)
}

// mark keeps the beginning that is complete now.
func (s *Sequence) mark() {
	if s.now.batches%s.stride != 0 {
		return
	}
	s.marks = append(s.marks, s.now)
	if len(s.marks) < marksKept {
		return
	}
	for i := range marksKept / 2 {
		s.marks[i] = s.marks[2*i+1]
	}
	s.marks = s.marks[:marksKept/2]
	s.stride *= 2
}

// at is the longest beginning of at most so many batches that is a multiple of
// a stride; all of them, if there are no more.
func (s *Sequence) at(batches, stride int) (m mark, ok bool) {
	if batches == s.now.batches {
		return s.now, true
	}
	for _, k := range s.marks {
		if k.batches <= batches && k.batches%stride == 0 {
			m, ok = k, true
		}
	}
	return m, ok
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

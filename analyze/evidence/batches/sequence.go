package batches

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/hash"
	"github.com/dptrace/dptrace/traces"
)

// Enough is how many different samples a pass must have before a repeated order
// says anything: 16 can be put in 16! = 2.1e13 orders, so that of a thousand
// right shuffles (500,000 pairs) two are alike in one of 4e7 trainings.
const Enough = 16

// Sequence is what is kept of the order in which one pass asked for samples, in
// bounded memory: a digest of all indices, and digests of its beginnings, for
// passes of which the loop took only the first batches.
type Sequence struct {
	Odd  bool    // rows are lost, or the keys are no integers: nothing can be said
	Seq  uint64  // of its first row in batch_put
	Head []int64 // the first few indices

	now    Beginning
	batch  uint32 // the one being read
	in     uint32 // its samples so far
	last   int64
	seen   []int64 // the first distinct indices, Enough at most
	kept   []Beginning
	stride int // batches from one of kept to the next
}

// Beginning is the first samples of a pass.
type Beginning struct {
	Batches, Samples int
	Distinct         int       // indices, counted up to Enough
	Digest           [2]uint64 // of the indices in their order; where batches end does not count
	origins          uint64    // of the samples' ids, where the dataset is put together of others; 0: some have none
	inner            uint64    // of the indices in these ids alone: a dataset that is made anew has another number

	descents int // how often an index is smaller than the one before
	jumps    int // how often it is not the one before plus 1; the first one has to be 0
}

const (
	// mostBeginnings of a pass are kept: 32 lose less than 1/16 of a pass that was
	// broken off.
	mostBeginnings = 32
	// headKept is how many indices a finding shows.
	headKept = 6
)

// Straight reports whether the order is 0, 1, 2, ...
func (b Beginning) Straight() bool { return b.jumps == 0 }

// Climbs reports whether the order ascends from the first sample to the last, but
// for padding, which begins anew.
func (b Beginning) Climbs() bool { return b.descents <= 1 && b.Distinct > 1 }

// Shuffled tells a shuffled order from one that climbs: a shuffle descends at
// every second step, and at fewer than every fourth in one of 200 of 16 samples,
// whose descents are (n-1)/2 with a variance of (n+1)/12. A sequential order
// descends only where padding begins.
func (b Beginning) Shuffled() bool { return 4*b.descents >= b.Samples-1 }

// Equal reports whether two beginnings have the same samples in the same order.
func (b Beginning) Equal(o Beginning) bool { return b.Samples == o.Samples && b.Digest == o.Digest }

// SameOrigins reports whether two beginnings are of the same samples of the same
// datasets, inside of whatever these are put together in.
func (b Beginning) SameOrigins(o Beginning) bool {
	return b.Samples == o.Samples && b.origins != 0 && b.origins == o.origins
}

// OtherPlaces reports whether two beginnings are of other samples of the datasets
// inside of Subset and ConcatDataset, though perhaps at the same indices.
func (b Beginning) OtherPlaces(o Beginning) bool {
	return b.Samples == o.Samples && b.origins != 0 && o.origins != 0 && b.inner != o.inner
}

// Batches that were asked for.
func (s *Sequence) Batches() int { return s.now.Batches }

// add a row.
func (s *Sequence) add(r *traces.BatchPut) {
	if s.stride == 0 {
		s.stride, s.Seq = 1, r.Seq
		s.now.Digest, s.now.origins = [2]uint64{0x243f6a8885a308d3, 0x13198a2e03707344}, 0xa4093822299f31d0
	}
	if s.Odd = s.Odd || !s.goesOn(r); s.Odd {
		return
	}
	if n := headKept - len(s.Head); n > 0 {
		s.Head = append(s.Head, r.Indices[:min(n, len(r.Indices))]...)
	}
	s.in += uint32(len(r.Indices))
	b, last := s.now, s.last
	if b.Samples == 0 {
		last = min(r.Indices[0], -1) // the first one has to be 0, and never descends
	}
	for _, i := range r.Indices {
		if i != last+1 {
			b.jumps++
		}
		if i < last {
			b.descents++
		}
		last = i
		b.Digest[0] = hash.Mix(b.Digest[0] ^ hash.Mix(uint64(i)))
		b.Digest[1] = hash.Mix(b.Digest[1] + 0x9e3779b97f4a7c15*uint64(i))
		if b.Distinct < Enough && !slices.Contains(s.seen, i) {
			s.seen = append(s.seen, i)
			b.Distinct++
		}
	}
	b.Samples += len(r.Indices)
	b.origin(r)
	s.now, s.last = b, last
}

// originShift is where the number of a dataset begins in traces.BatchPut.IDs.
const originShift = 40

// origin takes the ids of the samples of a row.
func (b *Beginning) origin(r *traces.BatchPut) {
	if len(r.IDs) != len(r.Indices) {
		b.origins = 0
	}
	if b.origins == 0 {
		return
	}
	for _, id := range r.IDs {
		b.origins = hash.Mix(b.origins^hash.Mix(uint64(id))) | 1
		b.inner = hash.Mix(b.inner ^ hash.Mix(uint64(id)&(1<<originShift-1)))
	}
}

// goesOn reports whether a row goes on where the one before ended, and begins its
// batch.
func (s *Sequence) goesOn(r *traces.BatchPut) bool {
	begun := s.now.Batches > 0
	switch {
	case len(r.Indices) == 0 || r.Keys != "":
		return false
	case !begun && r.Batch == 0 && r.First == 0:
		s.now.Batches = 1
	case begun && r.Batch == s.batch && r.First == s.in:
	case begun && r.Batch == s.batch+1 && r.First == 0:
		s.keep()
		s.now.Batches++
		s.batch, s.in = r.Batch, 0
	default:
		return false
	}
	return true
}

// keep the beginning that is complete now.
func (s *Sequence) keep() {
	if s.now.Batches%s.stride != 0 {
		return
	}
	s.kept = append(s.kept, s.now)
	if len(s.kept) < mostBeginnings {
		return
	}
	for i := range mostBeginnings / 2 {
		s.kept[i] = s.kept[2*i+1]
	}
	s.kept = s.kept[:mostBeginnings/2]
	s.stride *= 2
}

// Beginning is the longest one of at most so many batches that is known; all of
// them, if there are no more.
func (s *Sequence) Beginning(batches int) (b Beginning, ok bool) {
	if batches == s.now.Batches {
		return s.now, true
	}
	for _, k := range s.kept {
		if k.Batches <= batches {
			b, ok = k, true
		}
	}
	return b, ok
}

// Common is the longest beginnings of the same number of batches, and of no more
// than so many, that are known of two passes.
func Common(p, q *Sequence, batches int) (a, b Beginning, ok bool) {
	for {
		var of, too bool
		a, of = p.Beginning(batches)
		b, too = q.Beginning(batches)
		if !of || !too || a.Batches == b.Batches {
			return a, b, of && too
		}
		batches = min(a.Batches, b.Batches)
	}
}

package otlp

import (
	"math/bits"

	"github.com/dptrace/dptrace/analyze/stages"
)

// speed tells the slow batches of a loader from the others: those that the loop
// waited for, or that were fetched, longer than all but one of a hundred before
// them. It depends on the batches and their order only.
type speed struct{ wait, fetch ranks }

func newSpeed() *speed { return &speed{} }

func (s *speed) slow(b *stages.Batch) bool {
	wait, fetch := s.wait.high(b.Stages[stages.Wait].NS()), s.fetch.high(b.Stages[stages.Fetch].NS())
	return wait || fetch
}

// ranks counts durations by their magnitude: eight classes for each power of two.
type ranks struct {
	classes [64 * 8]uint32
	n       uint32
}

// enough durations must be known before one is said to be high.
const enough = 20

// high adds a duration and reports whether at most one of a hundred before it was
// of its class or a higher one.
func (r *ranks) high(ns int64) bool {
	class := classOf(uint64(max(ns, 0)))
	above := uint32(0)
	for _, n := range r.classes[class:] {
		above += n
	}
	r.classes[class]++
	r.n++
	return r.n > enough && 100*uint64(above) <= uint64(r.n)
}

func classOf(n uint64) int {
	power := bits.Len64(n)
	if power < 4 {
		return int(n)
	}
	return (power-1)*8 + int(n>>(power-4)&7)
}

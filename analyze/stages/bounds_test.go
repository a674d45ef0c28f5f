package stages

import (
	"math"
	"testing"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// TestBounds: what waits for rows that do not come is bounded, also where all times are the same.
func TestBounds(t *testing.T) {
	part := &traces.Part{}
	l := &loop{process: &timeline.Process{}}
	given := 0
	j := &joiner{Clock: &Clock{shift: map[*traces.Part]int64{}}, loops: map[Process]*loop{{part, 1}: l}, fn: func(*Batch) error { given++; return nil }}
	for i := range 3 * mostWaiting {
		j.copy(part, &traces.Copy{Head: traces.Head{TsNS: 5, Proc: 1}, Main: true, Direction: "to-device", Bytes: 1})
		if len(l.copies.waiting) > mostWaiting {
			t.Fatalf("%d copies wait after %d", len(l.copies.waiting), i)
		}
	}
	const batches = 3 * mostBehind
	j.seen = moment{0, math.MaxInt64}
	for i := range int64(batches) {
		b := &Batch{Delivered: true, Samples: 1}
		b.Stages[Wait], b.Stages[Step] = Interval{10 * i, 10*i + 5}, Interval{10*i + 5, 10*i + 10}
		l.delivered = append(l.delivered, &due{Batch: b, stepped: true})
	}
	if j.flush(l); given != batches-mostBehind || len(l.delivered) != mostBehind {
		t.Errorf("%d of %d batches are handed on although no copy was read for a long time, want all but %d", given, batches, mostBehind)
	}
}

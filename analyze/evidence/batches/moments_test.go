package batches

import (
	"math/rand/v2"
	"testing"
)

// TestMoments: the steps of each delivery are what they were, whatever the program
// does between two of them.
func TestMoments(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	for _, step := range []func(i int) uint64{
		func(int) uint64 { return 1 },
		func(int) uint64 { return 0 },
		func(i int) uint64 { return uint64(i % 4 / 3) }, // gradients of four batches
		func(int) uint64 { return r.Uint64N(3) },
		func(i int) uint64 { return uint64(i / 500) },
	} {
		d, steps, want := &Deliveries{}, uint64(40), map[uint32]uint64{}
		for i := range 3000 {
			if i == 1500 { // a row is lost
				steps += 7
				continue
			}
			want[uint32(i)] = steps
			d.moments.add(uint32(i), steps)
			steps += step(i)
		}
		for i := range uint32(3002) {
			got, ok := d.Steps(i)
			if w, known := want[i]; ok && (got != w || !known) || !ok && known && len(d.moments.runs) < mostRuns {
				t.Fatalf("batch %d: %d %v, want %d %v", i, got, ok, w, known)
			}
		}
		if len(d.moments.runs) > mostRuns {
			t.Errorf("%d runs", len(d.moments.runs))
		}
	}
}

// TestMomentsAreBounded: a pass of any length keeps so many runs, and what it does
// not know it does not make up.
func TestMomentsAreBounded(t *testing.T) {
	d := &Deliveries{}
	for i := range uint32(100_000) {
		d.moments.add(i, uint64(i)*uint64(i))
	}
	if len(d.moments.runs) != mostRuns {
		t.Errorf("%d runs", len(d.moments.runs))
	}
	if _, ok := d.Steps(99_999); ok {
		t.Error("known beyond what is kept")
	}
	if steps, ok := d.Steps(100); !ok || steps != 10_000 {
		t.Errorf("%d %v", steps, ok)
	}
}

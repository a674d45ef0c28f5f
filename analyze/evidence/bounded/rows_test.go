package bounded

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/analyze/hash"
)

func number(n *uint64) uint64 { return *n }

// TestGrouping: what is kept depends neither on the order in which rows came nor
// on how they were merged.
func TestGrouping(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int{1, 10, 1000, 1 << 16} {
		var all []uint64
		for range 5000 {
			all = append(all, r.Uint64N(3000))
		}
		once := New(limit, number)
		for _, n := range all {
			if once.Takes(n) {
				once.Add(n)
			}
		}
		want := slices.Sorted(slices.Values(once.All()))
		if len(want) > limit || limit > len(all) && (once.Halved() > 0 || len(want) != len(all)) {
			t.Fatalf("limit %d: %d rows, halved %d times", limit, len(want), once.Halved())
		}
		for range 10 {
			parts := []Rows[uint64]{New(limit, number), New(limit, number), New(limit, number)}
			for _, i := range r.Perm(len(all)) {
				if p := &parts[r.IntN(3)]; p.Takes(all[i]) {
					p.Add(all[i])
				}
			}
			parts[2].Merge(&parts[0])
			parts[1].Merge(&parts[2])
			if p := &parts[1]; p.Halved() != once.Halved() || !slices.Equal(slices.Sorted(slices.Values(p.All())), want) {
				t.Fatalf("limit %d: %d rows, halved %d times; want %d and %d", limit, len(p.All()), p.Halved(), len(want), once.Halved())
			}
		}
	}
}

// TestOneNumber: rows that all have one number cannot be told apart. Beyond the
// limit none of them is kept, even of the one number that is always low.
func TestOneNumber(t *testing.T) {
	always := uint64(0)
	always -= 0x9e3779b97f4a7c15
	if hash.Mix(always) != 0 {
		t.Fatalf("%x is mixed to %x", always, hash.Mix(always))
	}
	for _, n := range []uint64{0, 1, 12345, always} {
		rows := New(100, number)
		for i := range 10_000 {
			if rows.Takes(n) {
				rows.Add(n)
			}
			if len(rows.All()) > 100 || i < 100 && len(rows.All()) != i+1 {
				t.Fatalf("number %d: %d rows after %d", n, len(rows.All()), i+1)
			}
		}
		if len(rows.All()) > 0 {
			t.Errorf("number %d: %d rows are kept, and others not", n, len(rows.All()))
		}
	}
}

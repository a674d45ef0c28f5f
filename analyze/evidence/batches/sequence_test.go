package batches

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// TestCommon against the indices themselves: two passes that are alike up to some
// batch, and were broken off somewhere.
func TestCommon(t *testing.T) {
	const size = 4
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		a, b := indices(size*(1+r.IntN(300)), 1), indices(size*(1+r.IntN(300)), 2)
		alike := r.IntN(min(len(a), len(b)) + 1)
		copy(b, a[:alike])
		p, q := &requests(asked(size, a)...).Sequence, &requests(asked(size, b)...).Sequence
		n := 1 + r.IntN(min(p.Batches(), q.Batches()))
		x, y, ok := Common(p, q, n)
		if !ok {
			if n > mostBeginnings {
				t.Fatalf("nothing is known of the first %d batches of %d and %d", n, p.Batches(), q.Batches())
			}
			continue
		}
		if x.Batches != y.Batches || x.Batches > n || 2*x.Batches < n-mostBeginnings {
			t.Fatalf("the first %d of %d and %d batches: %d and %d are known", n, p.Batches(), q.Batches(), x.Batches, y.Batches)
		}
		if want := slices.Equal(a[:x.Samples], b[:y.Samples]); x.Equal(y) != want {
			t.Fatalf("%d samples, alike up to %d: equal %v, want %v", x.Samples, alike, x.Equal(y), want)
		}
	}
}

// TestBeginning: what is said of an order.
func TestBeginning(t *testing.T) {
	straight := make([]int64, 64)
	for i := range straight {
		straight[i] = int64(i)
	}
	for _, c := range []struct {
		name               string
		order              []int64
		straight, shuffled bool
		distinct           int
	}{
		{"0, 1, 2", straight, true, false, Enough},
		{"from 1 on", straight[1:], false, false, Enough},
		{"padded", append(slices.Clone(straight), 0, 1), false, false, Enough},
		{"shuffled", indices(64, 1), false, true, Enough},
		{"one over and over", make([]int64, 64), false, false, 1},
	} {
		b, ok := requests(asked(8, c.order)...).Sequence.Beginning(len(c.order) / 8)
		if len(c.order)%8 > 0 {
			b, ok = requests(asked(8, c.order)...).Sequence.Beginning(len(c.order)/8 + 1)
		}
		if !ok || b.Straight() != c.straight || b.Shuffled() != c.shuffled || b.Distinct != c.distinct || b.Samples != len(c.order) {
			t.Errorf("%s: %+v", c.name, b)
		}
	}
}

// TestOdd: rows that do not go on where the one before ended are a gap, from there on.
func TestOdd(t *testing.T) {
	whole := asked(4, indices(40, 1))
	for _, c := range []struct {
		name   string
		change func([]traces.BatchPut) []traces.BatchPut
	}{
		{"a batch is lost", func(rows []traces.BatchPut) []traces.BatchPut { return slices.Delete(rows, 3, 4) }},
		{"the first is lost", func(rows []traces.BatchPut) []traces.BatchPut { return rows[1:] }},
		{"the second part of a batch is lost", func(rows []traces.BatchPut) []traces.BatchPut { rows[4].First = 1; return rows }},
		{"keys", func(rows []traces.BatchPut) []traces.BatchPut { rows[4].Keys = "'a'"; return rows }},
		{"a batch comes twice", func(rows []traces.BatchPut) []traces.BatchPut { return append(rows, rows[9]) }},
	} {
		if s := requests(c.change(slices.Clone(whole))...).Sequence; !s.Odd {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	if s := requests(whole...).Sequence; s.Odd || s.Seq != 100 || !slices.Equal(s.Head, indices(40, 1)[:headKept]) {
		t.Errorf("%+v", s)
	}
}

// TestSequenceIsBounded: a pass of any length takes as much memory.
func TestSequenceIsBounded(t *testing.T) {
	s := &requests(asked(1, indices(300_000, 1))...).Sequence
	if s.Batches() != 300_000 || len(s.kept) >= mostBeginnings || len(s.seen) != Enough || len(s.Head) != headKept {
		t.Errorf("%d beginnings, %d, %d", len(s.kept), len(s.seen), len(s.Head))
	}
}

package batches

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// requests of one pass of a loader that deals its dataset out to ranks.
func requests(rows ...traces.BatchPut) *Requests {
	c := Requested.New().(*requested)
	part := &traces.Part{}
	c.Add(traces.Batch{Part: part, Rows: []traces.Loader{{SamplerReplicas: 2}}})
	c.Add(traces.Batch{Part: part, Rows: rows})
	q := at(c.passes[part], key{})
	q.flush()
	return q
}

// asked is rows that ask for indices, in batches of some size.
func asked(size int, indices []int64) (rows []traces.BatchPut) {
	for batch := range slices.Chunk(indices, size) {
		rows = append(rows, traces.BatchPut{Head: traces.Head{Seq: uint64(100 + len(rows))}, Batch: uint32(len(rows)), Indices: batch})
	}
	return rows
}

// indices from 0 up, shuffled.
func indices(n int, seed uint64) []int64 {
	list := make([]int64, n)
	for i, p := range rand.New(rand.NewPCG(seed, 1)).Perm(n) {
		list[i] = int64(p)
	}
	return list
}

// TestRequests counts batches whose rows come in pieces, and knows what is no index.
func TestRequests(t *testing.T) {
	q := requests(
		traces.BatchPut{Batch: 0, Indices: []int64{5, 6, 7}},
		traces.BatchPut{Batch: 0, First: 3, Indices: []int64{8}},
		traces.BatchPut{Batch: 1, Indices: []int64{9, 1}},
		traces.BatchPut{Head: traces.Head{Seq: 7}, Batch: 2, Indices: []int64{3}})
	if q.Batches != 3 || q.Most != 4 || q.Least != 1 || q.Others != 1 || q.Last != 2 || !slices.Equal(q.Ones, []Singleton{{2, 7}}) {
		t.Errorf("sizes: %+v", q.Sizes)
	}
	if q.Samples != 7 || q.Max != 9 || !q.Indexed() || q.Sequence.Odd || q.Sequence.Batches() != 3 {
		t.Errorf("%+v", q)
	}
	if q := requests(traces.BatchPut{Indices: []int64{4}}, traces.BatchPut{Batch: 1, Keys: "'a'"}); q.Indexed() || !q.Keyed || !q.Sequence.Odd {
		t.Errorf("keys: %+v", q)
	}
	if q := requests(traces.BatchPut{Indices: []int64{4, -1}}); q.Indexed() {
		t.Error("an index below 0")
	}
	if q := requests(traces.BatchPut{}); q.Indexed() || q.Batches != 0 {
		t.Errorf("an IterableDataset: %+v", q)
	}
}

// TestCompare: which passes asked for the same samples.
func TestCompare(t *testing.T) {
	from := func(batch uint32, lists ...[]int64) *Requests {
		var rows []traces.BatchPut
		for i, list := range lists {
			rows = append(rows, traces.BatchPut{Batch: batch + uint32(i), Indices: list})
		}
		return requests(rows...)
	}
	split := requests(traces.BatchPut{Indices: []int64{1}}, traces.BatchPut{First: 1, Indices: []int64{2}},
		traces.BatchPut{Batch: 1, Indices: []int64{3, 4}}, traces.BatchPut{Batch: 2, Indices: []int64{5, 6}})
	one := from(0, []int64{1, 2}, []int64{3, 4}, []int64{5, 6})
	for _, c := range []struct {
		name  string
		other *Requests
		want  Likeness
	}{
		{"the same", from(0, []int64{1, 2}, []int64{3, 4}, []int64{5, 6}), Same},
		{"in several rows", split, Same},
		{"in another order", from(0, []int64{6, 2}, []int64{3, 4}, []int64{5, 1}), Same},
		{"broken off", from(0, []int64{1, 2}, []int64{3, 4}), Same},
		{"the beginning is lost", from(1, []int64{3, 4}, []int64{5, 6}), Same},
		{"all but one batch", from(0, []int64{1, 2}, []int64{3, 4}, []int64{5, 7}), Different},
		{"the other half", from(0, []int64{7, 8}, []int64{9, 10}, []int64{11, 12}), Different},
		{"other batches were seen", from(7, []int64{7, 8}), Unknown},
		{"nothing was seen", &Requests{}, Unknown},
	} {
		if got := one.Compare(c.other); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := c.other.Compare(one); got != c.want {
			t.Errorf("%s, the other way around: %v, want %v", c.name, got, c.want)
		}
	}
	keys := func(k string) *Requests { return requests(traces.BatchPut{Keys: k}) }
	if keys("a").Compare(keys("a")) != Same || keys("a").Compare(keys("b")) != Different {
		t.Error("keys")
	}
}

// TestCover counts against all indices.
func TestCover(t *testing.T) {
	for _, n := range []int{100, 10_000, 200_000} {
		order, other := indices(n, 3), indices(n, 5)
		ranks := []*Requests{requests(asked(50, order[:n/2])...), requests(asked(50, order[n/2:])...)}
		if c := Cover(int64(n), ranks); c.Never != 0 || c.Often != 0 {
			t.Errorf("%d samples in two shares: %+v", n, c)
		}
		ranks[1] = requests(asked(50, other[n/2:])...)
		taken := map[int64]bool{}
		for _, i := range slices.Concat(order[:n/2], other[n/2:]) {
			taken[i] = true
		}
		c, never := Cover(int64(n), ranks), n-len(taken)
		if got := c.Never * c.Of; got < never*95/100 || got > never*105/100 || c.Of == 1 && got != never {
			t.Errorf("%d samples: %d are on no rank, %d were counted, of %d", n, never, got, c.Of)
		}
	}
}

// TestCoverOfAnyLength: the length of a dataset is what a trace says, and takes no
// time.
func TestCoverOfAnyLength(t *testing.T) {
	const samples = 100_000
	few, many := requests(asked(50, indices(100, 1))...), requests(asked(50, indices(samples, 1))...)
	for _, length := range []int64{1 << 40, 1 << 62, math.MaxInt64} {
		if c := Cover(length, []*Requests{few}); int64(c.Never) != length-100 || c.Of != 1 {
			t.Errorf("100 samples of %d: %+v", length, c)
		}
		c := Cover(length, []*Requests{many, many})
		if got, want := float64(c.Never)*float64(c.Of), float64(length); c.Of == 1 || got < 0.99*want || got > 1.01*want {
			t.Errorf("%d samples of %d: %+v", samples, length, c)
		}
		if got := c.Often * c.Of; got < samples*95/100 || got > samples*105/100 {
			t.Errorf("%d samples twice: %+v", samples, c)
		}
	}
	for _, length := range []int64{0, -1, math.MinInt64} {
		if c := Cover(length, []*Requests{{}}); c.Never != 0 {
			t.Errorf("of %d: %+v", length, c)
		}
	}
}

// TestKept: indices are kept of loaders that deal a dataset out, of few passes,
// and no more than so many.
func TestKept(t *testing.T) {
	if q := requests(asked(500, indices(1_000_000, 1))...); len(q.kept) > mostKept || len(q.kept) < mostKept/4 {
		t.Errorf("%d are kept", len(q.kept))
	}
	row := traces.BatchPut{Indices: []int64{1, 2}}
	later := row
	later.Pass = mostShared
	c := Requested.New().(*requested)
	part := &traces.Part{}
	c.Add(traces.Batch{Part: part, Rows: []traces.BatchPut{row}})
	if c.passes[part][key{}].Kept() {
		t.Error("of a loader of one rank")
	}
	c.Add(traces.Batch{Part: part, Rows: []traces.Loader{{SamplerReplicas: 2}}})
	c.Add(traces.Batch{Part: part, Rows: []traces.BatchPut{row, later}})
	if !c.passes[part][key{}].Kept() || c.passes[part][key{pass: mostShared}].Kept() {
		t.Error("of the first passes, and of no other")
	}
}

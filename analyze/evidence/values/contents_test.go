package values

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// rows of a part: digests of n samples and a distributed sampler's indices.
func rows(part *traces.Part, seed uint64, n int) []traces.Batch {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []traces.Batch
	for at := 0; at < n; at += 512 {
		d := traces.Digest{Head: traces.Head{Seq: uint64(at / 512), Proc: 2}, Loader: 1, Worker: -1, Batch: uint32(at / 512)}
		for range 512 {
			index := r.Int64N(1 << 40)
			d.Indices, d.Kinds = append(d.Indices, index), append(d.Kinds, 1)
			d.Contents = append(d.Contents, fmt.Appendf(nil, "%016x", index)...)
			d.Metas = append(d.Metas, make([]byte, 16)...)
		}
		all = append(all, traces.Batch{Part: part, Table: "digest", Rows: []traces.Digest{d}},
			traces.Batch{Part: part, Table: "batch_put", Rows: []traces.BatchPut{{Head: d.Head, Loader: 1, Indices: d.Indices}}})
	}
	return all
}

// TestBound: no more than a fixed number of samples is kept, the same ones
// however the parts were dealt out and merged, and on all ranks.
func TestBound(t *testing.T) {
	const parts, samples = 4, 100_000
	var list []*traces.Part
	for range parts {
		list = append(list, &traces.Part{})
	}
	whole := add(list, samples)
	if whole.held > most || whole.held < most/4 || whole.halved == 0 {
		t.Fatalf("%d samples are kept, halved %d times", whole.held, whole.halved)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		order := slices.Clone(list)
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		var groups []*Contents
		cut := 1 + r.IntN(len(order)-1)
		for _, some := range [][]*traces.Part{order[:cut], order[cut:]} {
			groups = append(groups, addOf(list, some, samples))
		}
		groups[0].Merge(groups[1])
		if got := groups[0]; got.held != whole.held || got.halved != whole.halved {
			t.Fatalf("%d kept, halved %d times; in one go %d and %d", got.held, got.halved, whole.held, whole.halved)
		}
		for _, p := range list {
			for k, want := range whole.parts[p].streams {
				if !slices.Equal(groups[0].parts[p].streams[k], want) {
					t.Fatal("other samples are kept")
				}
			}
		}
	}
}

func add(parts []*traces.Part, n int) *Contents { return addOf(parts, parts, n) }

func addOf(all, parts []*traces.Part, n int) *Contents {
	c := Source.New().(*Contents)
	for _, p := range parts {
		for _, b := range rows(p, uint64(slices.Index(all, p)), n) {
			c.Add(b)
		}
	}
	return c
}

// TestCover counts against all indices.
func TestCover(t *testing.T) {
	for _, n := range []int{100, 10_000, 200_000} {
		order := rand.New(rand.NewPCG(3, 4)).Perm(n)
		other := rand.New(rand.NewPCG(5, 6)).Perm(n)
		ranks := []*Asked{asked(order[:n/2]), asked(order[n/2:])}
		if c := Cover(int64(n), ranks); c.Never != 0 || c.Often != 0 {
			t.Errorf("%d samples in two shares: %+v", n, c)
		}
		ranks[1] = asked(other[n/2:])
		taken := map[int]bool{}
		for _, i := range slices.Concat(order[:n/2], other[n/2:]) {
			taken[i] = true
		}
		c, never := Cover(int64(n), ranks), n-len(taken)
		if got := c.Never * c.Of; got < never*95/100 || got > never*105/100 || c.Of == 1 && got != never {
			t.Errorf("%d samples: %d are on no rank, %d were counted, of %d", n, never, got, c.Of)
		}
	}
}

func asked(indices []int) *Asked {
	p := &part{asked: map[passKey]*Asked{}, plain: map[loaderKey]bool{}}
	row := traces.BatchPut{Loader: 1}
	for _, i := range indices {
		row.Indices = append(row.Indices, int64(i))
	}
	p.put(&row)
	return p.asked[passKey{0, 1, 0}]
}

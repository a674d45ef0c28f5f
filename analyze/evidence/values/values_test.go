package values

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// rows of a part: digests of n samples.
func rows(part *traces.Part, seed uint64, n int) []traces.Batch {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []traces.Batch
	for at := 0; at < n; at += 512 {
		d := traces.Digest{Head: traces.Head{Seq: uint64(at / 512), Proc: 2}, Loader: 1, Worker: -1, Batch: uint32(at / 512)}
		for i := range int64(512) {
			d.Positions = append(d.Positions, i)
			index := r.Int64N(1 << 40)
			d.Indices, d.Kinds = append(d.Indices, index), append(d.Kinds, 1)
			d.Contents = append(d.Contents, fmt.Appendf(nil, "%016x", index)...)
			d.Metas = append(d.Metas, make([]byte, 16)...)
		}
		all = append(all, traces.Batch{Part: part, Table: "digest", Rows: []traces.Digest{d}})
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
	all := add(list, samples)
	whole := kept(all)
	if n := len(all.digests.All()); n > mostDigests || n < mostDigests/4 || all.digests.Halved() == 0 {
		t.Fatalf("%d samples are kept, halved %d times", n, all.digests.Halved())
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		order := slices.Clone(list)
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		var groups []*collector
		cut := 1 + r.IntN(len(order)-1)
		for _, some := range [][]*traces.Part{order[:cut], order[cut:]} {
			groups = append(groups, addOf(list, some, samples))
		}
		groups[0].Merge(groups[1])
		if got, want := groups[0].digests.Halved(), all.digests.Halved(); got != want {
			t.Fatalf("halved %d times; in one go %d", got, want)
		}
		again := kept(groups[0])
		if len(again) != len(whole) {
			t.Fatalf("samples of %d workers are kept; in one go of %d", len(again), len(whole))
		}
		for of, want := range whole {
			if !reflect.DeepEqual(again[of], want) {
				t.Fatal("other samples are kept")
			}
		}
	}
}

// kept is the samples of each worker.
func kept(c *collector) map[stream][]Sample {
	of := map[stream][]Sample{}
	for _, d := range c.digests.All() {
		of[*d.stream] = append(of[*d.stream], d.Sample)
	}
	return of
}

func add(parts []*traces.Part, n int) *collector { return addOf(parts, parts, n) }

func addOf(all, parts []*traces.Part, n int) *collector {
	c := newCollector()
	for _, p := range parts {
		for _, b := range rows(p, uint64(slices.Index(all, p)), n) {
			c.Add(b)
		}
	}
	return c
}

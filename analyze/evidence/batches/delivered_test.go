package batches

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// TestUse: what became of each delivery, with two loaders in turn.
func TestUse(t *testing.T) {
	next := func(loader, pass, batch uint32, steps uint64) traces.BatchNext {
		return traces.BatchNext{Loader: loader, Pass: pass, Batch: batch, Status: "ok", Steps: steps}
	}
	c := Delivered.New().(*delivered)
	part := &traces.Part{}
	c.Add(traces.Batch{Part: part, Rows: []traces.BatchNext{
		next(1, 0, 0, 0), next(1, 0, 1, 1), next(1, 0, 2, 1), // a step after 0, none after 1
		next(2, 0, 0, 1),                   // beside it: the step after 1/0/2 is still to come
		next(2, 0, 1, 2), next(3, 0, 0, 2), // it comes here
		next(1, 1, 0, 3),
	}})
	of := func(loader, pass uint32) *Deliveries { return c.passes[part][key{loader: loader, pass: pass}] }
	for _, x := range []struct {
		loader, pass, batch uint32
		want                Use
	}{
		{1, 0, 0, Stepped}, {1, 0, 1, Passed}, {1, 0, 2, Stepped}, {2, 0, 0, Stepped}, {2, 0, 1, Stepped}, {3, 0, 0, Stepped}, {1, 1, 0, Unseen},
	} {
		if got := of(x.loader, x.pass).Use(x.batch); got != x.want {
			t.Errorf("%+v: %d", x, got)
		}
	}
	if d := of(1, 0); d.Count != 3 || d.Stepped != 2 || !d.Reached(2) || d.Reached(3) {
		t.Errorf("%+v", d)
	}
}

// TestOpen: of passes that are left without a step no more than so many wait for one.
func TestOpen(t *testing.T) {
	c := Delivered.New().(*delivered)
	part := &traces.Part{}
	var rows []traces.BatchNext
	for i := range uint32(200_000) {
		rows = append(rows, traces.BatchNext{Loader: i, Status: "ok"})
	}
	c.Add(traces.Batch{Part: part, Rows: rows})
	if n := len(c.open[process{part, 0}]); n != mostOpen {
		t.Errorf("%d wait", n)
	}
	c.Add(traces.Batch{Part: part, Rows: []traces.BatchNext{{Loader: 300_000, Status: "ok", Steps: 1}}})
	if of := c.passes[part]; of[key{loader: 199_999}].Use(0) != Stepped || of[key{loader: 5}].Use(0) != Unseen {
		t.Error("the step goes to the passes that wait")
	}
}

// TestSet: numbers of batches, whatever a trace says that they are.
func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s set
	if s.has(0) {
		t.Error("an empty one has 0")
	}
	in := map[uint32]bool{}
	for range 10_000 {
		for _, n := range []uint32{r.Uint32(), r.Uint32N(5000), math.MaxUint32 - r.Uint32N(10)} {
			s.add(n)
			in[n] = true
		}
	}
	for range 10_000 {
		for _, n := range []uint32{r.Uint32(), r.Uint32N(10_000), math.MaxUint32 - r.Uint32N(20)} {
			if s.has(n) != in[n] {
				t.Fatalf("%d: %v", n, s.has(n))
			}
		}
	}
	for n := range in {
		if !s.has(n) {
			t.Fatalf("%d is gone", n)
		}
	}
}

// TestFetches: counts of samples below zero are none.
func TestFetches(t *testing.T) {
	f := &Fetches{}
	for i, n := range []int32{8, 1, -5, math.MinInt32} {
		f.add(&traces.BatchFetch{Worker: -1, Batch: 99, Samples: n, Head: traces.Head{Seq: uint64(i)}})
	}
	if f.Samples != 9 || f.Least != 0 || f.Most != 8 || f.Batches != 4 || f.OnesInAll != 1 || f.Ones[0] != (Singleton{1, 1}) {
		t.Errorf("%+v", f)
	}
	for range 10_000 {
		f.add(&traces.BatchFetch{Samples: 1})
	}
	if len(f.Ones) != mostOnes || f.OnesInAll != 10_001 {
		t.Errorf("%d of %d are kept", len(f.Ones), f.OnesInAll)
	}
}

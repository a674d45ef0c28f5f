package batches

import (
	"math"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// TestDeliveries: rows of the batches, numbered as they were delivered.
func TestDeliveries(t *testing.T) {
	c := Delivered.New().(*delivered)
	part := &traces.Part{}
	var rows []traces.BatchNext
	for i, n := range []int32{8, 8, -1, 1, math.MinInt32, 8, 1} {
		rows = append(rows, traces.BatchNext{Head: traces.Head{Seq: uint64(10 + i)}, Loader: 1, Batch: 99, Status: "ok", Rows: n, Watched: true})
	}
	rows = append(rows, traces.BatchNext{Head: traces.Head{Seq: 17}, Loader: 1, Status: "stop", Rows: -1, Watched: true},
		traces.BatchNext{Head: traces.Head{Seq: 18}, Status: "exit", Rows: -1, Watched: true},
		traces.BatchNext{Head: traces.Head{Seq: 19}, Loader: 2, Status: "ok"})
	c.Add(traces.Batch{Part: part, Rows: rows})
	d := c.passes[part][key{loader: 1}]
	if d.Rows.Batches != 5 || d.Hidden != 2 || d.Seq != 17 || !slices.Equal(d.Rows.Ones, []Singleton{{3, 13}, {6, 16}}) || d.Rows.Least != 1 {
		t.Errorf("%+v", d)
	}
	if old := c.passes[part][key{loader: 2}]; old.Hidden != 1 || old.Rows.Batches != 0 {
		t.Errorf("rows of an older trace: %+v", old)
	}
	if len(c.passes[part]) != 2 {
		t.Error("the end of a process is no pass")
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

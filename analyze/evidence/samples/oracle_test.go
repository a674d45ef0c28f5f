package samples_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze/collect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// judged is the ledger of a trace.
func judged(t testing.TB, run *traces.Run) (*samples.Attribution, *timeline.Timeline) {
	t.Helper()
	e, err := collect.Read(run, samples.Source)
	if err != nil {
		t.Fatal(err)
	}
	return collect.Of(e, samples.Source), collect.Of(e, timeline.Source)
}

// TestOracle: a million samples on four ranks in five passes, counted by the
// ledger and by brute force.
func TestOracle(t *testing.T) {
	const ranks, passes, each, length, size = 4, 5, 50_000, 120_000, 500
	given := [passes][ranks]map[int64]int{} // index: batch
	orders := [passes][ranks][]int64{}
	for pass := range passes {
		for rank := range ranks {
			order := Shuffled(length, uint64(pass))[rank*20_000:][:each] // neighbours overlap
			if rank == 3 {
				order = Shuffled(length, uint64(100+pass))[:each]
			}
			orders[pass][rank], given[pass][rank] = order, map[int64]int{}
			for i, index := range order {
				given[pass][rank][index] = i / size
			}
		}
	}
	r := NewRun(t)
	for rank := range ranks {
		p := r.Process(rank, ranks)
		r.Add(p.Proc, traces.Loader{Loader: 1, Length: length, BatchSize: size, InOrder: true, DatasetID: 1, DatasetClass: "__main__.Points", Samplers: RandomSampler, File: "/home/me/proj/train.py", Line: 88})
		for pass := range uint32(passes) {
			for b := range uint32(each / size) {
				r.Add(p.Proc, traces.BatchPut{Loader: 1, Pass: pass, Batch: b, Worker: -1, Indices: orders[pass][rank][b*size : (b+1)*size]},
					traces.BatchNext{Loader: 1, Pass: pass, Batch: b, Status: "ok"})
			}
			r.Add(p.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "end", End: "exhausted", Delivered: each / size})
		}
	}
	r.Seal()
	j, tl := judged(t, r.Open(t))
	overlaps := j.Overlaps(tl.ByLoader()[0])
	if len(overlaps) != passes || j.Scale() != 1 {
		t.Fatalf("%d passes, scale %d", len(overlaps), j.Scale())
	}
	for pass, o := range overlaps {
		steps := map[[2]int64]bool{}
		for a := range ranks {
			if o.Distinct[a] != each {
				t.Errorf("pass %d, rank %d: %d samples", pass, a, o.Distinct[a])
			}
			for index, batch := range given[pass][a] {
				steps[[2]int64{index, int64(batch)}] = true
			}
			for b := a + 1; b < ranks; b++ {
				var want samples.Common
				for index, batch := range given[pass][a] {
					if other, ok := given[pass][b][index]; ok {
						want.Samples++
						if batch == other {
							want.InStep++
						}
						if max(batch, other) < each/size-1 {
							want.Inner++
						}
					}
				}
				got := *o.Of(a, b)
				if got.Example = (samples.Example{}); got != want {
					t.Errorf("pass %d, ranks %d and %d: %+v, want %+v", pass, a, b, got, want)
				}
			}
		}
		if o.Steps != len(steps) || o.Samples != ranks*each {
			t.Errorf("pass %d: %d in steps, %d samples, want %d, %d", pass, o.Steps, o.Samples, len(steps), ranks*each)
		}
	}
}

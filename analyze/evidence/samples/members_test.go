package samples_test

import (
	"testing"

	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

// TestMembers: what three ranks take, each of a Subset of its own, counted by the
// ledger and by brute force.
func TestMembers(t *testing.T) {
	const ranks, passes, length, taken, size = 3, 3, 30_000, 20_000, 500
	inside := [ranks][]int64{Shuffled(length, 1), Shuffled(length, 1), Shuffled(length, 2)}
	has := [ranks]map[int64]map[int64]bool{} // sample inside: its indices
	r := NewRun(t)
	var processes []*Process
	for rank := range ranks {
		processes = append(processes, r.Process(rank, ranks))
	}
	for rank, p := range processes {
		has[rank] = map[int64]map[int64]bool{}
		r.Add(p.Proc, traces.Loader{Loader: 1, Length: length, BatchSize: size, InOrder: true, DatasetClass: "torch.utils.data.dataset.Subset", Samplers: RandomSampler, File: "/home/me/proj/train.py", Line: 88})
		for pass := range uint32(passes) {
			order := Shuffled(length, uint64(100*rank)+uint64(pass))[:taken]
			for b := range uint32(taken / size) {
				put := traces.BatchPut{Loader: 1, Pass: pass, Batch: b, Worker: -1, Indices: order[b*size : (b+1)*size]}
				for _, index := range put.Indices {
					in := inside[rank][index]
					put.IDs = append(put.IDs, 5<<40|in)
					if has[rank][in] == nil {
						has[rank][in] = map[int64]bool{}
					}
					has[rank][in][index] = true
				}
				r.Add(p.Proc, put, traces.BatchNext{Loader: 1, Pass: pass, Batch: b, Status: "ok"})
			}
			r.Add(p.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "end", End: "exhausted", Delivered: taken / size})
		}
	}
	for _, p := range processes { // all lived to the end
		r.Add(p.Proc, traces.Memory{Rss: 1})
	}
	r.Seal()
	j, tl := judged(t, r.Open(t))
	shared := j.Members(tl.ByLoader()[0]).Shared
	if len(shared) != 3 {
		t.Fatalf("%d pairs of ranks", len(shared))
	}
	for _, s := range shared {
		a, b := s.PassA.Loader.Rank(), s.PassB.Loader.Rank()
		both, moved, others, places := 0, 0, 0, 0
		for in, at := range has[a] {
			other := has[b][in]
			if other == nil {
				continue
			}
			both++
			for index := range at {
				if !other[index] {
					moved++
				}
			}
		}
		for index := range int64(length) {
			if x, y := inside[a][index], inside[b][index]; has[a][x] != nil && has[b][y] != nil {
				places++
				if x != y {
					others++
				}
			}
		}
		if s.A != len(has[a]) || s.B != len(has[b]) || s.Samples != both || s.Moved != moved || s.Places != places || s.Others != others || s.Length != length || s.Foreign != 0 {
			t.Errorf("ranks %d and %d: %+v, want %d and %d, %d in both, %d moved, %d of %d others", a, b, s, len(has[a]), len(has[b]), both, moved, others, places)
		}
		if s.Still || s.Anew || s.Differ() != (others > 0) {
			t.Errorf("ranks %d and %d: %+v", a, b, s)
		}
	}
}

package fetches_test

import (
	"testing"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/evidence/fetches"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// TestByLoader: rows of workers, which do not know their loader, and of a main
// process, which does; and of workers that nobody has heard of.
func TestByLoader(t *testing.T) {
	ms := int64(time.Millisecond)
	split := func(loader, pass uint32, worker int32) traces.FetchSplit {
		return traces.FetchSplit{Loader: loader, Pass: pass, Worker: worker, Samples: 8, WallNS: 10 * ms, CPUNS: 3 * ms, QueueNS: ms, ReadBytes: 10,
			Reads: 1, Transforms: []int64{7, 8, 99}, Calls: []int64{8, 8, 1}, SpentNS: []int64{5 * ms, 4 * ms, ms}}
	}
	chain := func(loader uint32, first uint32) []any {
		return []any{traces.Transform{Loader: loader, Transform: first, Chain: "dataset.transform", Place: -1, Path: "dataset.transform", Class: "Compose"},
			traces.Transform{Loader: loader, Transform: first + 1, Chain: "dataset.transform", Place: 0, Path: "dataset.transform.transforms[0]",
				Class: "Crop"}}
	}
	run := detecttest.NewRun(t)
	main := run.Process(-1, 0).Proc
	run.Add(main, traces.Loader{Loader: 1, Length: 8, NumWorkers: 1, Batched: "yes", File: "/home/me/proj/train.py", Line: 88},
		traces.Loader{Loader: 2, Length: 8, Batched: "yes", File: "/home/me/proj/train.py", Line: 99})
	for pass := range uint32(2) {
		pid := int32(5000 + pass)
		run.Add(main, traces.Pass{Loader: 1, Pass: pass, Phase: "begin"}, traces.Worker{Loader: 1, Pass: pass, Pid: pid, Phase: "begin"})
		run.Add(100+pass, traces.Process{Pid: pid, Kind: "worker", Hook: "on", Rank: -1}, traces.Worker{Pid: pid, Phase: "ready"})
		run.Add(100+pass, chain(0, 7)...)
		run.Add(100+pass,
			traces.BatchFetch{Samples: 8, FetchNS: 10 * ms}, split(0, 0, 0), split(0, 0, 0))
	}
	run.Add(main, chain(2, 3)...) // numbers that none of its fetches has
	run.Add(main, traces.Pass{Loader: 2, Phase: "begin"}, traces.BatchFetch{Loader: 2, Worker: -1, Samples: 8}, split(2, 0, -1), split(2, 0, -1))
	run.Add(200, traces.Process{Pid: 7000, Kind: "worker", Hook: "on", Rank: -1}, split(0, 0, 3))
	run.Seal()
	e, err := collect.Read(run.Open(t), fetches.Source)
	if err != nil {
		t.Fatal(err)
	}
	loaders, found := collect.Of(e, timeline.Source).Loaders, collect.Of(e, fetches.Source)
	for i, want := range []int{4, 2} {
		if got := found.Of(loaders[i]); got.Fetches != want || got.Blocked != time.Duration(want)*6*time.Millisecond {
			t.Errorf("loader %d: %+v, want %d fetches", i, got, want)
		}
	}
	if got := found.Of(loaders...); got.Fetches != 6 || got.Read != 60 {
		t.Errorf("both: %+v", got)
	}
	if got := found.Of(); got.Fetches != 0 {
		t.Errorf("none: %+v", got)
	}
	all := found.Of(loaders[0]).Transforms()
	if len(all) != 2 || all[0].Class != "Compose" || all[1].Class != "Crop" || all[1].Fetches != 4 || all[1].Calls != 32 ||
		all[1].Wall != 16*time.Millisecond || all[1].Share() != 0.4 || all[1].Deviation() != 0 {
		t.Errorf("transforms: %+v", all)
	}
	if all = found.Of(loaders[1]).Transforms(); len(all) != 2 || all[1].Fetches != 0 || all[1].Share() != 0 {
		t.Errorf("transforms that were not timed: %+v", all)
	}
}

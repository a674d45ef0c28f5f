package samples_test

import (
	"testing"

	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// asking is ranks that ask for samples, each batch of one loader with one row.
func asking(t *testing.T, ranks, batches int, put func(rank, batch int) traces.BatchPut) *traces.Run {
	r := NewRun(t)
	var all []*Process
	for rank := range ranks {
		all = append(all, r.Process(rank, ranks))
	}
	for rank, p := range all {
		r.Add(p.Proc, traces.Loader{Loader: 1, Length: -1, BatchSize: 1, InOrder: true, DatasetClass: "torch.utils.data.dataset.Subset", Samplers: RandomSampler,
			File: "/home/me/proj/train.py", Line: 88})
		for b := range batches {
			row := put(rank, b)
			row.Loader, row.Batch, row.Worker = 1, uint32(b), -1
			r.Add(p.Proc, row)
		}
		r.Add(p.Proc, traces.BatchNext{Loader: 1, Status: "ok"}, traces.Pass{Loader: 1, Phase: "end", End: "exhausted", Delivered: uint32(batches)})
	}
	for _, p := range all { // all lived to the end
		r.Add(p.Proc, traces.Memory{Rss: 1})
	}
	r.Seal()
	return r.Open(t)
}

// TestOneSample: a sample that all batches of two ranks are of is counted in the
// time that its rows take, not in that of their pairs.
func TestOneSample(t *testing.T) {
	const batches = 200_000
	j, tl := judged(t, asking(t, 2, batches, func(int, int) traces.BatchPut { return traces.BatchPut{Indices: []int64{7}} }))
	overlaps := j.Overlaps(tl.ByLoader()[0])
	if len(overlaps) != 1 {
		t.Fatalf("%d overlaps", len(overlaps))
	}
	o := overlaps[0]
	if c := o.Of(0, 1); o.Samples != 2*batches || o.Steps != batches || o.Distinct[0] != 1 || c.Samples != 1 || c.InStep != 1 || c.Example.Index != 7 {
		t.Errorf("%+v, %+v", o, c)
	}
	if once := o.Once(o.Ranks[0].Pass); once {
		t.Error("each sample came once")
	}
}

// TestManyDatasets: so does a loader whose samples come from as many datasets.
func TestManyDatasets(t *testing.T) {
	const batches = 100_000
	j, tl := judged(t, asking(t, 2, batches, func(_, b int) traces.BatchPut {
		return traces.BatchPut{Indices: []int64{int64(b)}, IDs: []int64{int64(b+1) << 40}}
	}))
	ranks := tl.ByLoader()[0]
	if o := j.Overlaps(ranks)[0]; o.Distinct[0] != batches || o.Distinct[1] != batches {
		t.Errorf("%d and %d samples", o.Distinct[0], o.Distinct[1])
	}
	if m := j.Members(ranks); len(m.Shared) != 1 || m.Shared[0].A != batches {
		t.Errorf("%+v", m.Shared)
	}
}

// TestManyRanks: pairs of ranks are bounded, however many there are.
func TestManyRanks(t *testing.T) {
	const ranks = 2100
	j, tl := judged(t, asking(t, ranks, 1, func(int, int) traces.BatchPut { return traces.BatchPut{Indices: []int64{1}} }))
	overlaps := j.Overlaps(tl.ByLoader()[0])
	if len(overlaps) != 1 || len(overlaps[0].Ranks) != 2048 || overlaps[0].Of(2047, 0).Samples != 1 {
		t.Errorf("%d overlaps", len(overlaps))
	}
}

// TestStrange: ids, indices and digests that no hook writes.
func TestStrange(t *testing.T) {
	const most = 1<<63 - 1
	for what, put := range map[string]traces.BatchPut{
		"negative":            {Indices: []int64{-1, -most - 1}},
		"the largest":         {Indices: []int64{most, 1<<40 - 1, 1 << 40}},
		"ids of nothing":      {Indices: []int64{1, 2}, IDs: []int64{-1, -most - 1}},
		"the largest ids":     {Indices: []int64{most, -most}, IDs: []int64{most, 1<<40 - 1}},
		"fewer ids":           {Indices: []int64{1, 2}, IDs: []int64{3}},
		"more ids":            {Indices: []int64{1}, IDs: []int64{3, 4}},
		"ids alone":           {IDs: []int64{3, 4}},
		"neither":             {},
		"the same many times": {Indices: make([]int64, 5000)},
	} {
		j, tl := judged(t, asking(t, 2, 1, func(int, int) traces.BatchPut { return put }))
		for _, ranks := range tl.ByLoader() {
			for _, o := range j.Overlaps(ranks) {
				if o.Of(0, 1).Samples > len(put.Indices) {
					t.Errorf("%s: %+v", what, o.Of(0, 1))
				}
			}
			for _, s := range j.Members(ranks).Shared {
				if s.Samples > len(put.Indices) || s.Length < 0 {
					t.Errorf("%s: %+v", what, s)
				}
			}
			if gap := j.Gap(ranks); gap != "" {
				t.Errorf("%s: %s", what, gap)
			}
		}
	}
	none := NewRun(t)
	none.Seal()
	j, tl := judged(t, none.Open(t))
	if len(tl.Loaders) > 0 || len(j.Passes) > 0 || j.Members(timeline.Ranks{{ID: 1}}).Shared != nil || j.Overlaps(timeline.Ranks{{ID: 1}}) != nil {
		t.Error("an empty trace has samples")
	}
}

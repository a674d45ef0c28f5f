package samplesdropped_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/samplesdropped"
	"github.com/dptrace/dptrace/traces"
)

// played is a loader of batches of 8, in one or several passes.
type played struct {
	object  traces.Loader
	batches []int32 // of each worker; none: the main process has 4
	left    []int32 // that it dropped
	open    bool    // the pass is broken off
	lost    bool
	passes  int
	empty   bool // it delivers nothing
}

func stream(change func(*traces.Loader)) traces.Loader {
	l := traces.Loader{Iterable: true, DropLast: true, Batched: "yes", Length: -1}
	if change != nil {
		change(&l)
	}
	return l
}

var (
	lasting = stream(nil)
	mapped  = stream(func(l *traces.Loader) { l.Iterable = false })
)

var cases = []struct {
	name string
	play played
	want string
	says []string
}{
	{"three workers", played{object: lasting, batches: []int32{4, 4, 4}, left: []int32{7, 7, 7}}, "proven",
		[]string{"21 of 117 samples in pass 0", "worker 0 7, worker 1 7 and worker 2 7", "2 batches of 8 and 5 more", "17.9 %", "drop_last=False", "in 1 pass"}},
	{"one batch of two", played{object: lasting, batches: []int32{4, 4}, left: []int32{4, 4}, passes: 2}, "proven", []string{"1 batch of 8", "in 2 passes"}},
	{"two of three", played{object: lasting, batches: []int32{4, 4, 4}, left: []int32{7, 0, 3}}, "proven", []string{"worker 0 7 and worker 2 3"}},

	{"less than a batch", played{object: lasting, batches: []int32{4, 4}, left: []int32{4, 3}}, "note", nil},
	{"less than a thousandth", played{object: lasting, batches: []int32{1500, 1500}, left: []int32{7, 7}}, "note", nil},
	{"one worker", played{object: lasting, batches: []int32{4}, left: []int32{7}}, "note", []string{"a last batch"}},
	{"no workers", played{object: lasting, left: []int32{7}}, "note", []string{"the main process 7"}},
	{"a distributed sampler", played{object: stream(func(l *traces.Loader) {
		l.Iterable, l.Length, l.SamplerTotal, l.SamplerReplicas, l.Sampler = false, 99, 96, 4, "torch.utils.data.distributed.DistributedSampler"
	})}, "note", []string{"leaves out 3 of 99 samples", "4 ranks"}},

	{"a validation set smaller than a batch", played{object: stream(func(l *traces.Loader) {
		l.Iterable, l.Length, l.Samplers = false, 5, SequentialSampler
	}), empty: true, passes: 3}, "likely", []string{"nothing in each of its 3 passes", "a batch is 8", "5 samples make no batch of 8", "drop_last=False", "a client"}},
	{"a share smaller than a batch, of a dataset of unknown length", played{object: stream(func(l *traces.Loader) {
		l.Iterable, l.Samplers = false, RandomSampler
	}), empty: true}, "likely", []string{"in its one pass", "fewer samples make no batch"}},
	{"samples enough, and nothing came", played{object: stream(func(l *traces.Loader) {
		l.Iterable, l.Length, l.Samplers = false, 50, SequentialSampler
	}), empty: true, passes: 2}, "not-applicable", nil},
	{"an empty dataset", played{object: stream(func(l *traces.Loader) {
		l.Iterable, l.Length, l.Samplers = false, 0, SequentialSampler
	}), empty: true, passes: 2}, "not-applicable", nil},

	{"nothing left", played{object: lasting, batches: []int32{4, 4}, left: []int32{0, 0}}, "clean", []string{"no worker dropped"}},
	{"no drop_last", played{object: stream(func(l *traces.Loader) { l.DropLast = false }), batches: []int32{4, 4}}, "not-applicable", []string{"not set"}},
	{"a sampler", played{object: mapped, batches: []int32{4, 4}}, "not-applicable", []string{"one last batch"}},
	{"a sampler, broken off", played{object: mapped, batches: []int32{4, 4}, open: true}, "not-applicable", nil},
	{"a distributed sampler, broken off", played{object: stream(func(l *traces.Loader) {
		l.Iterable, l.Length, l.SamplerTotal, l.SamplerReplicas, l.DropLast = false, 99, 96, 4, false
	}), open: true}, "cannot-tell", []string{"to its end"}},
	{"broken off", played{object: lasting, batches: []int32{4, 4}, left: []int32{7, 7}, open: true}, "cannot-tell", []string{"to its end"}},
	{"lost rows", played{object: lasting, batches: []int32{4, 4}, lost: true}, "cannot-tell", []string{"lost"}},
	{"an older hook", played{object: stream(func(l *traces.Loader) { l.Batched = "" }), batches: []int32{4, 4}}, "cannot-tell", []string{"not in the trace"}},
}

func (c *played) play(r *Run) {
	p := r.Process(-1, 0)
	o := c.object
	o.Loader, o.BatchSize, o.NumWorkers, o.File, o.Line = 1, 8, int32(len(c.batches)), "/home/me/proj/train.py", 88
	o.DatasetClass = "__main__.Stream"
	r.Add(p.Proc, o)
	steps := uint64(0)
	for pass := range uint32(max(c.passes, 1)) {
		r.Add(p.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "begin"})
		delivered := uint32(0)
		fetch := func(proc, loader, local uint32, worker int32, batches int32, left int32) {
			for b := range batches {
				r.Add(proc, traces.BatchFetch{Loader: loader, Pass: local, Worker: worker, Batch: uint32(b), Fetch: uint32(b), Samples: 8})
				r.Add(p.Proc, traces.BatchNext{Loader: 1, Pass: pass, Batch: delivered, Worker: worker, Status: "ok", Steps: steps, Optimizer: 1, Grad: true})
				steps++
				delivered++
			}
			if left > 0 {
				r.Add(proc, traces.Leftover{Loader: loader, Pass: local, Worker: worker, Samples: left})
			}
		}
		at := func(i int) int32 {
			if i < len(c.left) {
				return c.left[i]
			}
			return 0
		}
		for i, n := range c.batches {
			proc := 100 + 10*pass + uint32(i)
			pid := int32(5000 + proc)
			r.Add(proc, traces.Process{Pid: pid, Kind: "worker", Hook: "on", Rank: -1})
			r.Add(p.Proc, traces.Worker{Loader: 1, Pass: pass, Worker: int32(i), Pid: pid, Phase: "begin"})
			r.Add(proc, traces.Worker{Worker: int32(i), Pid: pid, Phase: "ready"})
			fetch(proc, 0, 0, int32(i), n, at(i))
		}
		if len(c.batches) == 0 && !c.empty {
			fetch(p.Proc, 1, pass, -1, 4, at(0))
		}
		end := "dropped"
		if !c.open {
			end = "exhausted"
			r.Add(p.Proc, traces.BatchNext{Loader: 1, Pass: pass, Batch: delivered, Worker: -1, Status: "stop", Steps: steps, Grad: true})
		}
		r.Add(p.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "end", End: end, Delivered: delivered})
	}
	if c.lost {
		r.Add(100, traces.Lost{Source: "hook", Count: 3, Reason: "its ring was full"})
	}
	r.Seal()
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, samplesdropped.Rule.ID, c.want, c.says)
		})
	}
}

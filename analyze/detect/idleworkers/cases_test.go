package idleworkers_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/idleworkers"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/traces"
)

// played is passes of a loader with workers.
type played struct {
	shares     [][]int // of each pass: batches of each worker
	persistent bool
	mapped     bool // no IterableDataset
	dropLast   bool
	leave      bool // the loop does not use the passes to their end
	off        bool // the last worker is not watched
	killed     bool // the last worker
	unseen     bool // the rows of worker 0 are missing
	cut        bool
	old        bool               // a hook that did not look at first fetches
	did        batches.FirstFetch // of idle workers
	holds      []traces.Attribute // memory that they share
}

func (p played) play(r *Run) {
	main := r.Process(-1, 0)
	r.Add(main.Proc, traces.Loader{Loader: 1, Length: -1, BatchSize: 4, DatasetClass: "__main__.Shards", Iterable: !p.mapped, NumWorkers: int32(len(p.shares[0])), InOrder: true,
		Persistent: p.persistent, DropLast: p.dropLast, StartMethod: "fork", File: "/home/me/proj/train.py", Line: 88})
	for _, row := range p.holds {
		row.Loader, row.Worker, row.When = 1, -1, "held"
		r.Add(main.Proc, row)
	}
	var procs []uint32
	next := uint32(10)
	var steps uint64
	for pass, shares := range p.shares {
		n, local := uint32(pass), uint32(0)
		r.Add(main.Proc, traces.Pass{Loader: 1, Pass: n, Phase: "begin"})
		if p.persistent {
			local = n
		}
		if !p.persistent || pass == 0 {
			procs = nil
			for i := range shares {
				last := i == len(shares)-1
				hook := "on"
				if p.off && last {
					hook = "off"
				}
				procs = append(procs, next)
				pid := int32(2000 + next)
				r.Add(next, traces.Process{Pid: pid, Ppid: 1001, Kind: "worker", Hook: hook, Rank: -1, LocalRank: -1})
				r.Add(main.Proc, traces.Worker{Loader: 1, Pass: n, Worker: int32(i), Pid: pid, Phase: "begin"})
				r.Add(next, traces.Worker{Worker: int32(i), Pid: pid, Phase: "ready"})
				if p.killed && last {
					r.Add(next, traces.Exit{ExitCode: -1, Signal: 9, Source: "kernel"})
				}
				next++
			}
		}
		for w, share := range shares {
			did := batches.FirstFetch{CPU: 3_000_000, Written: 0}
			if share == 0 {
				did = p.did
				did.CPU = max(did.CPU, 90_000)
			}
			if !p.old {
				r.Add(procs[w], traces.Worker{Worker: int32(w), Pass: local, Phase: "first", CPUNS: did.CPU, Written: did.Written})
			}
		}
		batch := uint32(0)
		for w, share := range shares {
			for range share {
				if !p.unseen || w > 0 {
					r.Add(procs[w], traces.BatchFetch{Pass: local, Worker: int32(w), Batch: batch, Samples: 4})
				}
				r.Add(main.Proc, traces.BatchNext{Loader: 1, Pass: n, Batch: batch, Worker: -2, Status: "ok", Steps: steps, Optimizer: 1, Grad: true})
				batch++
				steps++
			}
		}
		end := "dropped"
		if !p.leave {
			end = "exhausted"
			r.Add(main.Proc, traces.BatchNext{Loader: 1, Pass: n, Batch: 1 << 31, Worker: -2, Status: "stop", Steps: steps, Optimizer: 1, Grad: true})
		}
		r.Add(main.Proc, traces.Pass{Loader: 1, Pass: n, Phase: "end", End: end, Delivered: batch})
	}
	if !p.cut {
		r.End("0")
	}
}

// shared is memory that a stream holds.
var shared = []traces.Attribute{{Path: "dataset.buffer", Class: "torch.Tensor"}}

// cases: want is the certainty or the status, and words that must be in what is
// said; those behind "not:" must not.
var cases = []struct {
	name string
	play played
	want string
	says []string
}{
	{"two shards for three workers", played{shares: [][]int{{4, 4, 0}, {4, 4, 0}}}, "proven", []string{"Worker 2 delivers nothing: 1 of 3 workers in both passes", "worker 0 4 and worker 1 4; worker 2 none", "num_workers=2"}},
	{"persistent workers", played{shares: [][]int{{4, 0, 0}, {4, 0, 0}}, persistent: true}, "proven", []string{"Workers 1 and 2 deliver nothing", "num_workers=1"}},
	{"another worker in each pass", played{shares: [][]int{{4, 4, 0}, {4, 0, 4}}}, "proven", nil},
	{"less than a batch, dropped", played{shares: [][]int{{4, 4, 0}}, dropLast: true}, "proven", []string{"drop_last=True"}},

	{"it looked about for long", played{shares: [][]int{{4, 4, 0}}, did: batches.FirstFetch{CPU: 40_000_000}}, "proven", []string{"took 40.0 ms of CPU time and wrote 0 bytes"}},
	{"it said so on the console", played{shares: [][]int{{4, 4, 0}}, did: batches.FirstFetch{CPU: 200_000, Written: 31}}, "proven", nil},
	{"memory that they share, and no time to fill it in", played{shares: [][]int{{400, 400, 0}}, holds: shared, did: batches.FirstFetch{CPU: 900_000}}, "proven", nil},
	{"it fills memory that they share", played{shares: [][]int{{4, 4, 0}}, holds: shared, did: batches.FirstFetch{CPU: 900_000}}, "likely", []string{"works for the others"}},
	{"it writes files or to a queue", played{shares: [][]int{{4, 4, 0}}, did: batches.FirstFetch{CPU: 900_000, Written: 4096}}, "likely", []string{"works for the others", "wrote 4,096 bytes"}},
	{"it works for long on nobody knows what", played{shares: [][]int{{4, 4, 0}}, did: batches.FirstFetch{CPU: 900_000_000}}, "likely", nil},
	{"what it wrote is not known", played{shares: [][]int{{4, 4, 0}}, did: batches.FirstFetch{CPU: 90_000, Written: -1}}, "likely", nil},
	{"an older hook", played{shares: [][]int{{4, 4, 0}}, old: true}, "likely", nil},

	{"in one of three passes", played{shares: [][]int{{4, 4, 4}, {4, 4, 4}, {4, 4, 0}}}, "note", nil},

	{"all deliver", played{shares: [][]int{{4, 4, 1}}}, "clean", []string{"3 workers, each delivered samples in 1 pass"}},
	{"map-style", played{shares: [][]int{{4, 4, 4}}, mapped: true}, "clean", nil},

	{"no workers", played{shares: [][]int{{}}}, "not-applicable", []string{"no workers"}},
	{"fewer batches than workers", played{shares: [][]int{{1, 1, 0}}}, "cannot-tell", []string{"fewer batches than workers"}},
	{"one batch for each of the others", played{shares: [][]int{{1, 1, 1, 0}}}, "cannot-tell", nil},
	{"not used to its end: it may be slow", played{shares: [][]int{{4, 4, 0}}, leave: true}, "cannot-tell", []string{"to its end"}},
	{"nothing was delivered", played{shares: [][]int{{0, 0}}, leave: true}, "cannot-tell", []string{"to its end", "not:no workers"}},
	{"not watched", played{shares: [][]int{{4, 4, 0}}, off: true}, "cannot-tell", []string{"could not be watched"}},
	{"killed", played{shares: [][]int{{4, 4, 0}}, killed: true}, "cannot-tell", nil},
	{"its rows are missing", played{shares: [][]int{{4, 4, 4}}, unseen: true}, "cannot-tell", []string{"not in the trace"}},
	{"cut", played{shares: [][]int{{4, 4, 0}}, cut: true}, "cannot-tell", []string{"cut"}},
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
			Verdict(t, r.Findings, r.Checks, idleworkers.Rule.ID, c.want, c.says)
		})
	}
}

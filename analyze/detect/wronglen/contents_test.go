package wronglen_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/wronglen"
	"github.com/dptrace/dptrace/traces"
)

// played is a dataset of which all samples were digested in each of two passes.
type played struct {
	sampler  string
	length   int64 // -1: of a class of the program's own
	asks     []int64
	batch    int
	dropLast bool
	replicas int64
	total    int64
	composed bool
	old      bool
	open     bool
	what     func(pass int, index int64) What
}

func around(size int64) func(int, int64) What {
	return func(_ int, index int64) What { return Numbered(index % size) }
}

func (c *played) play(r *Run) {
	p := r.Process(-1, 0)
	o := traces.Loader{Loader: 1, Length: c.length, BatchSize: int32(c.batch), DropLast: c.dropLast, DatasetClass: "__main__.Spectra", DatasetID: 1, Batched: "yes", SamplerReplicas: c.replicas, SamplerTotal: c.total,
		Sampler: c.sampler, BatchSampler: "torch.utils.data.sampler.BatchSampler", File: "/home/me/proj/train.py", Line: 88}
	if c.composed {
		o.DatasetID = 0
	}
	if c.old {
		o.Batched = ""
	}
	r.Add(p.Proc, o)
	for pass := range uint32(2) {
		r.Add(p.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "begin"})
		batches := uint32(0)
		for at := 0; at < len(c.asks); at += c.batch {
			indices := c.asks[at:min(at+c.batch, len(c.asks))]
			r.Add(p.Proc, traces.BatchPut{Loader: 1, Pass: pass, Batch: batches, Worker: -1, Indices: indices})
			if !c.old {
				r.Add(p.Proc, Digest(traces.Digest{Loader: 1, Pass: pass, Worker: -1, Batch: batches, Fetch: batches}, indices, func(index int64) What { return c.what(int(pass), index) }))
			}
			r.Add(p.Proc, traces.BatchFetch{Loader: 1, Pass: pass, Worker: -1, Batch: batches, Fetch: batches, Samples: int32(len(indices))},
				traces.BatchNext{Loader: 1, Pass: pass, Batch: batches, Worker: -1, Status: "ok", Grad: true})
			batches++
		}
		end := "dropped"
		if !c.open {
			end = "exhausted"
			r.Add(p.Proc, traces.BatchNext{Loader: 1, Pass: pass, Batch: batches, Worker: -1, Status: "stop", Grad: true})
		}
		r.Add(p.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "end", End: end, Delivered: batches})
	}
	r.Seal()
}

const deals = "torch.utils.data.distributed.DistributedSampler"

var wraps = []struct {
	name string
	play played
	want string
	says []string
}{
	{"120 of 80", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(80)}, "proven",
		[]string{"__main__.Spectra has 80 samples, and a length of 120: it begins again at index 80", "40 pairs", "40 of 120 samples", "2 times, the others once", "return len(self.items)  # 80"}},
	{"length known", played{sampler: "__main__.Order", length: 120, asks: Shuffled(120, 1), batch: 8, what: around(80)}, "proven", nil},
	{"drop_last", played{sampler: random, length: -1, asks: Shuffled(123, 1)[:120], batch: 8, dropLast: true, what: around(80)}, "proven", []string{"a length of 12", " to 127"}},
	{"two and a half rounds", played{sampler: random, length: -1, asks: Shuffled(200, 1), batch: 8, what: around(80)}, "proven", []string{"3 times, the others 2"}},
	{"some rows of the data are equal", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(_ int, index int64) What { return Numbered(max(index%80, 2)) }}, "proven", nil},
	{"one rank of two", played{sampler: deals, length: -1, replicas: 2, total: 120, asks: Shuffled(120, 1)[:60], batch: 8, what: around(50)}, "proven", []string{"length of 120 to 121"}},

	{"twice on purpose", played{sampler: random, length: -1, asks: Shuffled(160, 1), batch: 8, what: around(80)}, "clean", []string{"80 samples, each 2 times"}},
	{"twice on purpose, dealt out", played{sampler: deals, length: -1, replicas: 2, total: 160, asks: Shuffled(160, 1)[:80], batch: 8, what: around(80)}, "cannot-tell", []string{"on purpose"}},
	{"hours and days", played{sampler: random, length: -1, asks: Shuffled(184, 1), batch: 8, what: around(56)}, "note", []string{"a period"}},
	{"a pass of a chosen length", played{sampler: random, length: -1, asks: Shuffled(500, 1), batch: 8, what: around(30)}, "note", []string{"may be chosen"}},
	{"all different", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(1000)}, "clean", []string{"120 of 120"}},
	{"rows of the data are equal", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(_ int, index int64) What { return Numbered(int64(mix(index)) % 60) }}, "clean", nil},
	{"a list that ends with some of its own once more, elsewhere", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(_ int, index int64) What {
		if index >= 112 {
			return Numbered(int64(mix(index)) % 112)
		}
		return Numbered(index)
	}}, "clean", nil},
	{"few pairs", played{sampler: random, length: -1, asks: Shuffled(85, 1), batch: 8, what: around(80)}, "cannot-tell", []string{"5 pairs"}},
	{"augmented", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(pass int, index int64) What { return Numbered(1000*int64(pass) + index) }}, "cannot-tell", []string{"too few"}},
	{"empty samples", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(int, int64) What { return What{} }}, "cannot-tell", nil},
	{"only labels could be read", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(_ int, index int64) What { return What{Content: "pil", Label: fmt.Sprint(index % 80), Part: true} }}, "cannot-tell", nil},
	{"chunks", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(_ int, index int64) What { return What{Content: fmt.Sprint(index % 80), Chunks: true} }}, "cannot-tell", nil},
	{"put together of others", played{sampler: random, length: 120, composed: true, asks: Shuffled(120, 1), batch: 8, what: around(80)}, "cannot-tell", []string{"put together"}},
	{"a length beyond all reckoning", played{sampler: random, length: math.MaxInt64, asks: Shuffled(120, 1), batch: 8, what: around(1000)}, "cannot-tell", []string{"too few"}},
	{"indices beyond all reckoning", played{sampler: random, length: -1, asks: append(Shuffled(119, 1), math.MaxInt64), batch: 8, what: around(1000)}, "cannot-tell", []string{"length of the dataset is not"}},
	{"shares beyond all reckoning", played{sampler: deals, length: -1, replicas: math.MaxInt64, total: math.MaxInt64, asks: Shuffled(120, 1), batch: 8, what: around(1000)}, "cannot-tell", []string{"too few"}},
	{"a sampler of the program's own", played{sampler: "__main__.Order", length: -1, asks: Shuffled(120, 1), batch: 8, what: around(80)}, "cannot-tell", []string{"length of the dataset is not"}},
	{"broken off", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(80), open: true}, "cannot-tell", []string{"length of the dataset is not"}},
	{"an older hook", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, old: true}, "cannot-tell", []string{"not in the trace"}},
}

// mix is some other number for each.
func mix(index int64) uint64 { return uint64(index*2654435761) >> 7 % 1009 }

func TestWraps(t *testing.T) {
	for _, c := range wraps {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, wronglen.Rule.ID, c.want, c.says)
		})
	}
}

// stream is a pass of an IterableDataset with a length.
type stream struct {
	asked    int64
	gives    []int32 // samples of each fetch of each of two workers; none: the main process's 4 of 8
	workers  int32
	batched  string
	dropLast bool
	open     bool
	ranks    int
	lost     bool
}

func (c *stream) play(r *Run) {
	for rank := range max(c.ranks, 1) {
		if c.ranks == 0 {
			rank = -1
		}
		p := r.Process(rank, c.ranks)
		r.Add(p.Proc, traces.Loader{Loader: 1, Length: -1, BatchSize: 8, Iterable: true, DropLast: c.dropLast, DatasetClass: "__main__.Rows", DatasetID: 1, Batched: c.batched, NumWorkers: c.workers, File: "/home/me/proj/train.py", Line: 88},
			traces.Pass{Loader: 1, Phase: "begin"})
		proc, loader, worker := p.Proc, uint32(1), int32(-1)
		if c.workers > 0 {
			proc, loader, worker = 100+uint32(rank), 0, 0
			pid := int32(5000 + proc)
			r.Add(proc, traces.Process{Pid: pid, Kind: "worker", Hook: "on", Rank: -1})
			r.Add(p.Proc, traces.Worker{Loader: 1, Worker: 0, Pid: pid, Phase: "begin"})
			r.Add(proc, traces.Worker{Worker: 0, Pid: pid, Phase: "ready"})
		}
		for i, n := range c.gives {
			r.Add(proc, traces.BatchFetch{Loader: loader, Worker: worker, Batch: uint32(i), Fetch: uint32(i), Samples: n})
			r.Add(p.Proc, traces.BatchNext{Loader: 1, Batch: uint32(i), Worker: worker, Status: "ok", Grad: true})
		}
		end := "dropped"
		if !c.open {
			end = "exhausted"
			r.Add(p.Proc, traces.BatchNext{Loader: 1, Batch: uint32(len(c.gives)), Worker: worker, Status: "stop", Grad: true})
		}
		r.Add(p.Proc, traces.Pass{Loader: 1, Phase: "end", End: end, Delivered: uint32(len(c.gives)), LenAsked: c.asked})
		if c.lost {
			r.Add(p.Proc, traces.Lost{Source: "hook", Count: 3, Reason: "its ring was full"})
		}
	}
	r.Seal()
}

func eights(n int, more ...int32) (list []int32) {
	for range n {
		list = append(list, 8)
	}
	return append(list, more...)
}

var streams = []struct {
	name string
	play stream
	want string
	says []string
}{
	{"fewer", stream{asked: 100, gives: eights(10, 2), batched: "yes"}, "proven", []string{"__main__.Rows gives 82 samples, its len() says 100", "18 samples less", "return 82"}},
	{"more, in workers", stream{asked: 64, gives: eights(10, 2), batched: "yes", workers: 2}, "proven", []string{"82 samples, its len() says 64", "18 samples more"}},
	{"a length beyond all reckoning", stream{asked: math.MaxInt64, gives: eights(10, 2), batched: "yes"}, "proven", []string{"9,223,372,036,854,775,725 samples less"}},
	{"not batched", stream{asked: 4, gives: []int32{8, 8, 8, 8, 8, 8}, batched: "no"}, "proven", []string{"6 samples, its len() says 4"}},

	{"as many", stream{asked: 82, gives: eights(10, 2), batched: "yes"}, "clean", []string{"1 pass of as many"}},
	{"as many, one by one", stream{asked: 4, gives: eights(4), batched: "no"}, "clean", nil},
	{"on two ranks together", stream{asked: 164, gives: eights(10, 2), batched: "yes", ranks: 2}, "clean", nil},
	{"a share on each of two ranks", stream{asked: 160, gives: eights(10, 2), batched: "yes", ranks: 2}, "cannot-tell", []string{"share"}},
	{"each worker gives all", stream{asked: 41, gives: eights(10, 2), batched: "yes", workers: 2}, "cannot-tell", []string{"shard-duplicate-workers"}},
	{"as many in each of two workers", stream{asked: 83, gives: eights(10, 2), batched: "yes", workers: 2}, "note", nil},
	{"drop_last", stream{asked: 82, gives: eights(10), batched: "yes", dropLast: true}, "cannot-tell", []string{"drop_last"}},
	{"broken off", stream{asked: 100, gives: eights(4), batched: "yes", open: true}, "cannot-tell", nil},
	{"nobody asked", stream{gives: eights(4), batched: "yes"}, "cannot-tell", []string{"did not ask"}},
	{"lost rows", stream{asked: 100, gives: eights(10), batched: "yes", lost: true}, "cannot-tell", []string{"lost"}},
}

func TestStreams(t *testing.T) {
	for _, c := range streams {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, wronglen.Rule.ID, c.want, c.says)
		})
	}
}

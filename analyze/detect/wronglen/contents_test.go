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
	once     bool    // one pass
	sizes    []int64 // of containers that hang on the dataset
	counts   string
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
	r.Add(p.Proc, o, traces.Dataset{Dataset: 1, Class: o.DatasetClass, Length: -1, Sizes: c.sizes, Counts: c.counts})
	passes := uint32(2)
	if c.once {
		passes = 1
	}
	for pass := range passes {
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

// noisy is samples of which a text stays, and all else is another in each pass.
func noisy(text func(index int64) string) func(int, int64) What {
	return func(pass int, index int64) What {
		return What{Content: fmt.Sprint("noise ", pass, " ", index), Parts: []string{fmt.Sprint("noise ", pass, " ", index), text(index)}}
	}
}

const deals = "torch.utils.data.distributed.DistributedSampler"

var wraps = []struct {
	name string
	play played
	want string
	says []string
}{
	{"120 of 80", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(80), sizes: []int64{2, 80}, counts: "header.count=120,header.channels=8"}, "proven",
		[]string{"__main__.Spectra has 80 samples, and a length of 120: it begins again at index 80", "40 pairs", "40 of 120 samples", "2 times, the others once", "return len(self.items)  # 80", "A container of 80 items hangs on the dataset, and none of 120", "what dataset.header.count says"}},
	{"120 of 80, a length that the program was given", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(80), sizes: []int64{80}, counts: "cfg.samples=120"}, "likely", []string{"a chosen number of samples", "not:period"}},
	{"120 of 80, a length of an epoch", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(80), sizes: []int64{80}, counts: "meta.epoch_rows=120"}, "likely", []string{"a chosen number of samples"}},
	{"120 rows, of which the last ones are the first ones", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(80), sizes: []int64{80, 120}, counts: "header.rows=120"}, "likely", []string{"some of the first samples once more", "not:chosen number"}},
	{"the first rows once more, to fill the last batch", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(104), sizes: []int64{120}}, "cannot-tell", []string{"120 items hang on the dataset"}},
	{"one too many", played{sampler: random, length: -1, asks: Shuffled(81, 1), batch: 8, what: around(80), sizes: []int64{80}, counts: "header.rows=81"}, "proven", []string{"80 samples, and a length of 81", "1 of 81"}},
	{"one too many, nothing is known of the dataset", played{sampler: random, length: -1, asks: Shuffled(81, 1), batch: 8, what: around(80)}, "cannot-tell", []string{"1 pair of samples is alike"}},
	{"120 of 80, in one pass", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(80), once: true, sizes: []int64{80}, counts: "header.rows=120"}, "proven", nil},
	{"all different, in one pass", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(1000), once: true}, "cannot-tell", []string{"0 of 120 samples are known to have the same content in each of several passes"}},
	{"noise, and numbers that come again", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: noisy(func(index int64) string { return fmt.Sprint(index % 80) })}, "likely", []string{"begins again at index 80", "40 pairs of samples whose indices differ by 80 have the same text", "what else is in a sample is another in each pass", "the data are in an order that repeats"}},
	{"noise, and labels of two classes that come again", played{sampler: random, length: -1, asks: Shuffled(200, 1), batch: 8, what: noisy(func(index int64) string { return fmt.Sprint(mix(index%120) % 2) })}, "likely", []string{"begins again at index 120", "80 pairs"}},
	{"noise, and labels in turns", played{sampler: random, length: -1, asks: Shuffled(200, 1), batch: 8, what: noisy(func(index int64) string { return fmt.Sprint(index % 10) })}, "cannot-tell", []string{"too few"}},
	{"noise, and labels", played{sampler: random, length: -1, asks: Shuffled(200, 1), batch: 8, what: noisy(func(index int64) string { return fmt.Sprint(mix(index) % 2) })}, "cannot-tell", []string{"too few"}},
	{"read by collate: rows of the batch come again", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(_ int, index int64) What {
		return What{Content: fmt.Sprint(index), Row: fmt.Sprint("row ", index%80)}
	}, sizes: []int64{80}, counts: "header.rows=120"}, "proven", []string{"index 80"}},
	{"read by collate: other rows of equal samples", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(_ int, index int64) What {
		return What{Content: fmt.Sprint(index % 80), Row: fmt.Sprint("row ", index)}
	}}, "clean", nil},
	{"length known", played{sampler: "__main__.Order", length: 120, asks: Shuffled(120, 1), batch: 8, what: around(80), sizes: []int64{80}, counts: "info.n=120"}, "proven", nil},
	{"drop_last", played{sampler: random, length: -1, asks: Shuffled(123, 1)[:120], batch: 8, dropLast: true, what: around(80), sizes: []int64{80}, counts: "info.n=123"}, "proven", []string{"again 80 indices on, below its length of at least 123", "not:has 80 samples"}},
	{"two and a half rounds", played{sampler: random, length: -1, asks: Shuffled(200, 1), batch: 8, what: around(80), sizes: []int64{80}, counts: "manifest.rows=200"}, "proven", []string{"3 times, the others 2"}},
	{"some rows of the data are equal", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: func(_ int, index int64) What { return Numbered(max(index%80, 2)) }, sizes: []int64{80}, counts: "header.n=120"}, "proven", nil},
	{"one rank of two", played{sampler: deals, length: -1, replicas: 2, total: 120, asks: Shuffled(120, 1)[:60], batch: 8, what: around(50), sizes: []int64{50}, counts: "header.n=120"}, "proven", []string{"length of at least 120"}},

	{"twice on purpose", played{sampler: random, length: -1, asks: Shuffled(160, 1), batch: 8, what: around(80)}, "clean", []string{"80 samples, each 2 times"}},
	{"twice on purpose, dealt out", played{sampler: deals, length: -1, replicas: 2, total: 160, asks: Shuffled(160, 1)[:80], batch: 8, what: around(80)}, "cannot-tell", []string{"on purpose"}},
	{"hours and days", played{sampler: random, length: -1, asks: Shuffled(184, 1), batch: 8, what: around(56)}, "note", []string{"a period"}},
	{"a pass of a chosen length", played{sampler: random, length: -1, asks: Shuffled(500, 1), batch: 8, what: around(30)}, "note", []string{"may be chosen"}},
	{"all different", played{sampler: random, length: -1, asks: Shuffled(120, 1), batch: 8, what: around(1000)}, "clean", []string{"the 120 samples, which are the same in each pass"}},
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
	passes   []pass // nil: two of that length
}

// pass is one of a stream: what len() had given last, and how many more samples it has.
type pass struct {
	asked int64
	more  int32
}

func (c *stream) play(r *Run) {
	for rank := range max(c.ranks, 1) {
		if c.ranks == 0 {
			rank = -1
		}
		p := r.Process(rank, c.ranks)
		r.Add(p.Proc, traces.Loader{Loader: 1, Length: -1, BatchSize: 8, Iterable: true, DropLast: c.dropLast, DatasetClass: "__main__.Rows", DatasetID: 1, Batched: c.batched, NumWorkers: c.workers, File: "/home/me/proj/train.py", Line: 88})
		passes := c.passes
		if passes == nil {
			passes = []pass{{c.asked, 0}, {c.asked, 0}}
		}
		for i, pass := range passes {
			c.pass(r, p, rank, uint32(i), pass)
		}
		if c.lost {
			r.Add(p.Proc, traces.Lost{Source: "hook", Count: 3, Reason: "its ring was full"})
		}
	}
	r.Seal()
}

func (c *stream) pass(r *Run, p *Process, rank int, number uint32, pass pass) {
	r.Add(p.Proc, traces.Pass{Loader: 1, Pass: number, Phase: "begin"})
	proc, loader, worker, at := p.Proc, uint32(1), int32(-1), number
	if c.workers > 0 {
		proc, loader, worker, at = 100+10*uint32(rank+1)+number, 0, 0, 0
		pid := int32(5000 + proc)
		r.Add(proc, traces.Process{Pid: pid, Kind: "worker", Hook: "on", Rank: -1})
		r.Add(p.Proc, traces.Worker{Loader: 1, Pass: number, Worker: 0, Pid: pid, Phase: "begin"})
		r.Add(proc, traces.Worker{Worker: 0, Pid: pid, Phase: "ready"})
	}
	for i, n := range c.gives {
		if i == 0 {
			n += pass.more
		}
		r.Add(proc, traces.BatchFetch{Loader: loader, Pass: at, Worker: worker, Batch: uint32(i), Fetch: uint32(i), Samples: n})
		r.Add(p.Proc, traces.BatchNext{Loader: 1, Pass: number, Batch: uint32(i), Worker: worker, Status: "ok", Grad: true})
	}
	end := "dropped"
	if !c.open {
		end = "exhausted"
		r.Add(p.Proc, traces.BatchNext{Loader: 1, Pass: number, Batch: uint32(len(c.gives)), Worker: worker, Status: "stop", Grad: true})
	}
	r.Add(p.Proc, traces.Pass{Loader: 1, Pass: number, Phase: "end", End: end, Delivered: uint32(len(c.gives)), LenAsked: pass.asked})
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

	{"as many", stream{asked: 82, gives: eights(10, 2), batched: "yes"}, "clean", []string{"2 passes of as many"}},
	{"fewer, in one pass", stream{gives: eights(10, 2), batched: "yes", passes: []pass{{100, 0}}}, "likely", []string{"has changed since its length was asked"}},
	{"a length that grows, asked for once", stream{gives: eights(10, 2), batched: "yes", passes: []pass{{82, 0}, {82, 40}, {82, 80}}}, "cannot-tell", []string{"asked for before another pass"}},
	{"a length that grows, asked for each time", stream{gives: eights(10, 2), batched: "yes", passes: []pass{{82, 0}, {122, 40}, {162, 80}}}, "clean", []string{"3 passes"}},
	{"a length that grows, asked for before the next pass begins", stream{gives: eights(10, 2), batched: "yes", passes: []pass{{82, 0}, {162, 0}, {162, 80}}}, "clean", nil},
	{"a length that was never right, and passes that differ", stream{gives: eights(10, 2), batched: "yes", passes: []pass{{60, 0}, {60, 40}}}, "cannot-tell", []string{"passes of 82 and of 122 samples", "may have changed"}},
	{"wrong each time, asked for each time", stream{gives: eights(10, 2), batched: "yes", passes: []pass{{100, 0}, {140, 40}}}, "likely", nil},

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

package detecttest

import (
	"crypto/sha256"

	"github.com/dptrace/dptrace/traces"
)

// Serve is a played DataLoader of which counts what samples it hands out.
type Serve struct {
	Line        int32  // of DataLoader(...); 0 is 88
	Dataset     string // class; "" is __main__.Points
	DatasetID   uint32 // 0: samples name theirs
	Length      int64
	Samplers    string // "" is torch's RandomSampler in its BatchSampler
	Shuffle     string
	Replacement string
	Rank        int64 // of the sampler, here and below
	Replicas    int64
	Seed        int64
	Batch       int // samples of a batch; 0 is 4
	Workers     int // of an IterableDataset
	Iterable    bool
	Batched     string // "no": batch_size=None
	Total       int64  // of the sampler, all ranks
	Stack       string // of DataLoader(...), innermost first
	Collate     string
}

// Sample is one that is handed out.
type Sample struct {
	Index   int64
	ID      int64  // in the dataset that it comes from in the end; 0: the loader's
	Content string // "": it was not looked at
	Text    string // in it
	Kind    byte   // 0 is 1: all of its content was digested
}

// Server is a Serve that its program has made.
type Server struct {
	Serve
	p      *Process
	number uint32
	passes uint32
}

// What most samplers are.
const (
	RandomSampler      = "torch.utils.data.sampler.BatchSampler > torch.utils.data.sampler.RandomSampler"
	SequentialSampler  = "torch.utils.data.sampler.BatchSampler > torch.utils.data.sampler.SequentialSampler"
	WeightedSampler    = "torch.utils.data.sampler.BatchSampler > torch.utils.data.sampler.WeightedRandomSampler"
	DistributedSampler = "torch.utils.data.sampler.BatchSampler > torch.utils.data.distributed.DistributedSampler"
)

// Serve makes the loader.
func (p *Process) Serve(s Serve) *Server {
	if s.Line == 0 {
		s.Line = 88
	}
	if s.Dataset == "" {
		s.Dataset = "__main__.Points"
	}
	if s.Samplers == "" {
		s.Samplers = RandomSampler
	}
	if s.Batch == 0 {
		s.Batch = 4
	}
	p.loaders++
	p.Run.Add(
		p.Proc,
		traces.Loader{
			Loader:       p.loaders,
			Class:        "torch.utils.data.dataloader.DataLoader",
			DatasetClass: s.Dataset,
			DatasetID:    s.DatasetID,
			Length:       s.Length,
			BatchSize:    int32(s.Batch),
			NumWorkers: int32(
				s.Workers,
			),
			Iterable:        s.Iterable,
			Batched:         s.Batched,
			Samplers:        s.Samplers,
			SamplerRank:     s.Rank,
			SamplerReplicas: s.Replicas,
			SamplerSeed:     s.Seed,
			Shuffle:         s.Shuffle,
			Replacement:     s.Replacement,
			SamplerTotal:    s.Total,
			InOrder:         true,
			File:            "/home/me/proj/train.py",
			Line:            s.Line,
			Stack:           s.Stack,
			Collate:         s.Collate,
			StartMethod:     "fork",
		},
	)
	return &Server{Serve: s, p: p, number: p.loaders}
}

// Pass hands out samples to the loop. What is fetched after a break is thrown
// away.
func (o *Server) Pass(how Pass, samples []Sample) { o.Within(how, samples, func(int) {}) }

// Within is the same, with something that is done after each batch.
func (o *Server) Within(how Pass, samples []Sample, after func(batch int)) {
	r, proc := o.p.Run, o.p.Proc
	o.begin()
	for at := 0; at < len(samples); at += o.Batch {
		some := samples[at:min(at+o.Batch, len(samples))]
		batch := uint32(at / o.Batch)
		put := traces.BatchPut{Loader: o.number, Pass: o.passes, Batch: batch, Worker: -1}
		for _, s := range some {
			put.Indices = append(put.Indices, s.Index)
			if s.ID != 0 {
				put.IDs = append(put.IDs, s.ID)
			}
		}
		r.Add(proc, put, traces.BatchFetch{Loader: o.number, Pass: o.passes, Worker: -1, Batch: batch, Fetch: batch, Samples: int32(len(some))})
		o.digest(proc, o.number, o.passes, -1, batch, at, some)
		if how.Break == 0 || int(batch) < how.Break {
			o.next(batch, "ok", how)
			after(int(batch))
		}
	}
	o.end(how, (len(samples)+o.Batch-1)/o.Batch)
}

// Stream hands out what each worker of an IterableDataset reads, in turns.
func (o *Server) Stream(how Pass, workers ...[]Sample) {
	r := o.p.Run
	o.begin()
	var procs []uint32
	for i := range workers {
		w := r.process("worker", -1, 0)
		procs = append(procs, w.Proc)
		pid := int32(1000 + w.Proc%60)
		r.Add(o.p.Proc, traces.Worker{Loader: o.number, Pass: o.passes, Worker: int32(i), Pid: pid, Phase: "begin"})
		r.Add(w.Proc, traces.Worker{Worker: int32(i), Pid: pid, Phase: "ready"})
	}
	batch, delivered := uint32(0), 0
	for window, more := 0, true; more; window++ {
		more = false
		for i, samples := range workers {
			at := window * o.Batch
			if at >= len(samples) {
				continue
			}
			more = true
			some := samples[at:min(at+o.Batch, len(samples))]
			r.Add(procs[i], traces.BatchFetch{Worker: int32(i), Batch: batch, Fetch: uint32(window), Samples: int32(len(some))})
			o.digest(procs[i], 0, 0, i, batch, at, some)
			if how.Break == 0 || delivered < how.Break {
				o.next(batch, "ok", how)
				delivered++
			}
			batch++
		}
	}
	o.end(how, delivered)
}

func (o *Server) begin() {
	o.p.Run.Add(o.p.Proc, traces.Pass{Loader: o.number, Pass: o.passes, Phase: "begin"})
}

func (o *Server) next(batch uint32, status string, how Pass) {
	p := o.p
	p.Run.Add(
		p.Proc,
		traces.BatchNext{
			Loader:    o.number,
			Pass:      o.passes,
			Batch:     batch,
			Worker:    -1,
			Status:    status,
			Steps:     p.steps,
			Optimizer: p.last,
			Grad:      !how.NoGrad,
		},
	)
	if status == "ok" && how.Optimizer > 0 {
		p.steps++
		p.last = how.Optimizer
	}
}

func (o *Server) end(how Pass, delivered int) {
	end := "dropped"
	if how.Break == 0 {
		o.next(uint32(delivered), "stop", how)
		end = "exhausted"
	} else {
		delivered = min(delivered, how.Break)
	}
	o.p.Run.Add(o.p.Proc, traces.Pass{Loader: o.number, Pass: o.passes, Phase: "end", End: end, Delivered: uint32(delivered)})
	o.passes++
}

func (o *Server) digest(proc, loader, pass uint32, worker int, batch uint32, at int, some []Sample) {
	d := traces.Digest{Loader: loader, Pass: pass, Worker: int32(worker), Batch: batch}
	for i, s := range some {
		if s.Content == "" {
			continue
		}
		d.Positions = append(d.Positions, int64(at+i))
		if !o.Iterable {
			d.Indices = append(d.Indices, s.Index)
		}
		kind, meta := max(s.Kind, 1), [16]byte{}
		if s.Text != "" {
			kind, meta = kind|8, short(s.Text)
		}
		content := short(s.Content)
		d.Kinds = append(d.Kinds, kind)
		d.Contents, d.Metas = append(d.Contents, content[:]...), append(d.Metas, meta[:]...)
	}
	if len(d.Positions) > 0 {
		o.p.Run.Add(proc, d)
	}
}

// short stands for a BLAKE2b-128.
func short(text string) [16]byte {
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:16])
}

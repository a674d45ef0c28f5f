package detecttest

import (
	"math/rand/v2"

	"github.com/dptrace/dptrace/traces"
)

// Walk is a played DataLoader without workers of which only the order counts.
type Walk struct {
	Sampler      string // "" is torch's RandomSampler
	BatchSampler string // "" is torch's BatchSampler
	Shuffle      string // of a distributed sampler: yes, no
	Iterable     bool
	Keys         bool // instead of indices
	Batch        int  // samples of a batch; 0 is 8
	Ready        bool // batch_size=None: the dataset hands out batches
	Passes       int
	Anew         bool                       // a DataLoader object for each pass
	Dataset      uint32                     // Loader.DatasetID
	Told         []int64                    // epochs that set_epoch was called with, before the first pass
	Generator    bool                       // was given
	Unended      bool                       // the last pass has no end row: the program ends in it
	Order        func(pass int) []int64     // of the samples
	Epoch        func(pass int) int64       // nil: no such attribute
	Optimizer    func(pass int) uint32      // that steps; nil: number 1 in all passes; 0: none
	Seed         func(pass int) int64       // base seed; nil: a new one each
	Break        func(pass int) int         // batches after which the loop breaks; 0: none
	Lost         func(pass, batch int) bool // rows of batch_put that are not in the trace
	NoGrad       bool
	Contains     func(pass int, index int64) What // nil: nothing was digested
}

// Shuffled is a permutation of n samples.
func Shuffled(n int, seed uint64) []int64 {
	order := Ascending(n, 0, 1)
	rand.New(rand.NewPCG(seed, 9)).Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// Ascending is first, first + step, ..., n numbers.
func Ascending(n, first, step int) []int64 {
	order := make([]int64, n)
	for i := range order {
		order[i] = int64(first + i*step)
	}
	return order
}

// Walk plays the passes.
func (p *Process) Walk(w Walk) {
	if w.Sampler == "" {
		w.Sampler = "torch.utils.data.sampler.RandomSampler"
	}
	if w.BatchSampler == "" {
		w.BatchSampler = "torch.utils.data.sampler.BatchSampler"
	}
	batched := "yes"
	if w.Ready {
		w.Batch, batched = 1, "no"
	}
	if w.Batch == 0 {
		w.Batch = 8
	}
	recorded := uint32(0)
	for pass := range w.Passes {
		if pass == 0 || w.Anew {
			p.loaders++
			recorded = 0
			p.Run.Add(
				p.Proc,
				traces.Loader{
					Loader:       p.loaders,
					Class:        "torch.utils.data.dataloader.DataLoader",
					DatasetClass: "__main__.Points",
					Length:       -1,
					BatchSize:    int32(w.Batch),
					Iterable:     w.Iterable,
					Batched:      batched,
					Sampler:      w.Sampler,
					BatchSampler: w.BatchSampler,
					SamplerEpoch: w.epoch(pass),
					Generator:    w.Generator,
					Shuffle:      w.Shuffle,
					File:         "/home/me/proj/train.py",
					Line:         88,
					DatasetID:    w.Dataset,
					SamplerID:    p.loaders,
				},
			)
			for _, epoch := range w.Told {
				p.Run.Add(p.Proc, traces.SetEpoch{SamplerID: p.loaders, Epoch: epoch, File: "/home/me/proj/train.py", Line: 80})
			}
		}
		w.play(p, pass, recorded)
		recorded++
	}
}

func (w *Walk) epoch(pass int) int64 {
	if w.Epoch == nil {
		return -1
	}
	return w.Epoch(pass)
}

func (w *Walk) play(p *Process, pass int, recorded uint32) {
	r, n := p.Run, p.loaders
	seed, optimizer, stop := int64(1000+pass), uint32(1), 0
	if w.Seed != nil {
		seed = w.Seed(pass)
	}
	if w.Optimizer != nil {
		optimizer = w.Optimizer(pass)
	}
	if w.Break != nil {
		stop = w.Break(pass)
	}
	r.Add(p.Proc, traces.Pass{Loader: n, Pass: recorded, Phase: "begin", BaseSeed: seed, SamplerEpoch: w.epoch(pass)})
	order, batch, end := w.Order(pass), 0, "exhausted"
	next := func(status string) {
		r.Add(
			p.Proc,
			traces.BatchNext{
				Loader:    n,
				Pass:      recorded,
				Batch:     uint32(batch),
				Worker:    -1,
				Status:    status,
				Steps:     p.steps,
				Optimizer: p.last,
				Grad:      !w.NoGrad,
			},
		)
	}
	for at := 0; at < len(order) && !w.Iterable; at += w.Batch {
		put := traces.BatchPut{Loader: n, Pass: recorded, Batch: uint32(batch), Worker: -1, Indices: order[at:min(at+w.Batch, len(order))]}
		if w.Keys {
			put.Indices, put.Keys = nil, "('a', 1)"
		}
		if w.Lost == nil || !w.Lost(pass, batch) {
			r.Add(p.Proc, put)
		}
		if w.Contains != nil {
			r.Add(
				p.Proc,
				Digest(
					traces.Digest{Loader: n, Pass: recorded, Worker: -1, Batch: uint32(batch), Fetch: uint32(batch)},
					order[at:min(at+w.Batch, len(order))],
					func(index int64) What { return w.Contains(pass, index) },
				),
			)
		}
		if stop > 0 && batch >= stop { // prefetched
			batch++
			continue
		}
		r.Add(
			p.Proc,
			traces.BatchFetch{Loader: n, Pass: recorded, Worker: -1, Batch: uint32(batch), Fetch: uint32(batch), Samples: int32(w.Batch)},
		)
		next("ok")
		if optimizer > 0 {
			p.steps++
			p.last = optimizer
		}
		batch++
	}
	if stop > 0 {
		end, batch = "dropped", min(stop, batch)
	} else {
		next("stop")
	}
	if !w.Unended || pass < w.Passes-1 {
		r.Add(p.Proc, traces.Pass{Loader: n, Pass: recorded, Phase: "end", End: end, Delivered: uint32(batch)})
	}
}

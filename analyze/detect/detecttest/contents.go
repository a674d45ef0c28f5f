package detecttest

import (
	"strings"

	"crypto/md5"
	"fmt"

	"github.com/dptrace/dptrace/traces"
)

// What is a sample, as the hook tells of it.
type What struct {
	Content string // all of it; "" there is next to nothing in it
	Label   string // its strings and integers; "" none
	Chunks  bool   // only chunks of it were read
	Part    bool   // some of it could not be
	Follows bool   // a window of a series, some steps after the one before
	Row     string // that it has become in the batch; "": it was not looked for
	Parts   []string
}

// Digest is the row about some samples.
func Digest(row traces.Digest, indices []int64, what func(index int64) What) traces.Digest {
	for i, index := range indices {
		w := what(index)
		kind := byte(1)
		if w.Chunks {
			kind = 2
		}
		if w.Content == "" {
			kind += 4
		}
		if w.Part {
			kind += 32
		}
		if w.Follows && i > 0 && indices[i-1] == index-1 {
			kind += 64
		}
		meta := make([]byte, 16)
		if w.Label != "" {
			kind += 16
			meta = sum(w.Label)
		}
		if w.Row != "" {
			kind |= 128
			row.RowKinds, row.Rows = append(row.RowKinds, 1), append(row.Rows, sum(w.Row)...)
		}
		row.Counts = append(row.Counts, byte(len(w.Parts)))
		for _, part := range w.Parts {
			row.Parts = append(row.Parts, append([]byte{4}, sum(part)[:7]...)...)
		}
		row.Positions = append(row.Positions, int64(i))
		row.Indices = append(row.Indices, index)
		row.Kinds = append(row.Kinds, kind)
		row.Contents = append(row.Contents, sum(w.Content+"|"+w.Label)...)
		row.Metas = append(row.Metas, meta...)
	}
	return row
}

func sum(text string) []byte {
	b := md5.Sum([]byte(text))
	return b[:]
}

// Keeper is a played DataLoader with persistent workers, or with other ones,
// whose dataset has values that the training sets.
type Keeper struct {
	Workers  int
	Passes   int
	Batches  int  // of each worker and pass; 0 is 2
	Fresh    bool // workers for each pass
	Old      bool // a hook that wrote no attributes
	Eval     bool // no optimizer steps, gradients are off
	Idle     func(pass, worker int) bool
	Break    func(pass int) bool // after the first batch
	Class    string              // of the value; "" is int, float or str, as it looks
	Path     string              // of it; "" is dataset.epoch
	Nowhere  bool                // no one line assigns it
	Iterable bool
	Read     string
	Lost     bool                             // records of a worker
	Set      func(pass int) string            // in the training process as the pass begins; "" it is not there
	Sees     func(pass, worker int) string    // a worker; nil: as it was when it was started; "" it does not have it
	Contains func(pass int, index int64) What // nil: nothing was digested
	Renews   func(pass int) bool              // a list of the training process is another than before
	Digest   bool                             // the value is a list of which there is a digest
	Others   []traces.Attribute               // rows of the training process, as the second pass begins
	Keys     bool                             // the sampler asks for more than indices
	Unknown  bool                             // no optimizer steps, gradients are on
}

// Keep plays it.
func (p *Process) Keep(k Keeper) {
	r := p.Run
	p.loaders++
	n := p.loaders
	if k.Batches == 0 {
		k.Batches = 2
	}
	if k.Path == "" {
		k.Path = "dataset.epoch"
	}
	batched := "yes"
	if k.Old {
		batched = ""
	}
	r.Add(
		p.Proc,
		traces.Loader{
			Loader:       n,
			Class:        "torch.utils.data.dataloader.DataLoader",
			DatasetClass: "__main__.Points",
			Iterable:     k.Iterable,
			Length:       -1,
			BatchSize:    8,
			NumWorkers:   int32(k.Workers),
			Persistent:   !k.Fresh && k.Workers > 0,
			Sampler:      "torch.utils.data.sampler.RandomSampler",
			BatchSampler: "torch.utils.data.sampler.BatchSampler",
			StartMethod:  "fork",
			Batched:      batched,
			DatasetID:    1,
			File:         "/home/me/proj/train.py",
			Line:         88,
		},
	)
	attribute := func(proc uint32, row traces.Attribute, told map[uint32]string, value string) {
		if value == "" || told[proc] == value || k.Old {
			return
		}
		told[proc] = value
		class := k.Class
		if class == "" {
			switch class = "int"; {
			case strings.HasPrefix(value, "'"):
				class = "str"
			case strings.Contains(value, "."):
				class = "float"
			}
		}
		row.Path, row.Class, row.Value, row.Read = k.Path, "builtins."+class, value, k.Read
		if k.Digest {
			row.Value, row.Items, row.Ordered = "", 9, []byte(value)
		}
		if !k.Nowhere {
			row.File, row.Line = "/home/me/proj/data.py", 12
		}
		r.Add(proc, row)
	}
	told := map[uint32]string{}
	var procs []*Process
	begun := ""
	for pass := range k.Passes {
		now := k.Set(pass)
		r.Add(p.Proc, traces.Pass{Loader: n, Pass: uint32(pass), Phase: "begin", BaseSeed: 7, SamplerEpoch: -1})
		if !k.Fresh && k.Workers > 0 {
			attribute(p.Proc, traces.Attribute{Loader: n, Pass: uint32(pass), Worker: -1, When: "iter"}, told, now)
		}
		if pass == 1 {
			for _, row := range k.Others {
				row.Loader, row.Pass, row.Worker = n, uint32(pass), -1
				r.Add(p.Proc, row)
			}
		}
		if k.Renews != nil && k.Renews(pass) {
			r.Add(
				p.Proc,
				traces.Attribute{
					Loader: n,
					Pass:   uint32(pass),
					Worker: -1,
					When:   "iter",
					Path:   "dataset.rows",
					Class:  "builtins.list",
					Items:  96,
					Read:   k.Read,
				},
			)
		}
		if pass == 0 || k.Fresh {
			procs, begun = nil, now
			for i := range k.Workers {
				w := r.process("worker", -1, 0)
				procs = append(procs, w)
				pid := int32(1000 + w.Proc%60)
				r.Add(p.Proc, traces.Worker{Loader: n, Pass: uint32(pass), Worker: int32(i), Pid: pid, Phase: "begin"})
				r.Add(w.Proc, traces.Worker{Worker: int32(i), Pid: pid, Phase: "ready", Seed: int64(i)})
			}
		}
		local := uint32(pass)
		if k.Fresh {
			local = 0
		}
		k.serve(p, n, pass, local, procs, func(proc uint32, worker int) {
			value := begun
			if k.Sees != nil {
				value = k.Sees(pass, worker)
			}
			if !k.Fresh {
				attribute(proc, traces.Attribute{Pass: local, Worker: int32(worker), When: "fetch"}, told, value)
			}
		})
	}
	if k.Lost {
		r.Add(procs[0].Proc, traces.Lost{Source: "hook", Count: 3, Reason: "its ring was full"})
	}
}

func (k *Keeper) serve(p *Process, n uint32, pass int, local uint32, procs []*Process, begin func(proc uint32, worker int)) {
	r := p.Run
	delivered := 0
	next := func(batch, worker int, status string) {
		r.Add(
			p.Proc,
			traces.BatchNext{
				Loader:    n,
				Pass:      uint32(pass),
				Batch:     uint32(batch),
				Worker:    int32(worker),
				Status:    status,
				Steps:     p.steps,
				Optimizer: 1,
				Grad:      !k.Eval,
			},
		)
	}
	stop := k.Break != nil && k.Break(pass)
	for b := range k.Batches {
		for i, w := range procs {
			if k.Idle != nil && k.Idle(pass, i) {
				continue
			}
			if b == 0 {
				begin(w.Proc, i)
			}
			batch := b*len(procs) + i
			indices := Ascending(8, 8*batch, 1)
			put := traces.BatchPut{Loader: n, Pass: uint32(pass), Batch: uint32(batch), Worker: int32(i), Indices: indices}
			if k.Keys {
				put.Indices, put.Keys = nil, "tuple,tuple"
			}
			r.Add(p.Proc, put)
			if k.Contains != nil {
				r.Add(
					w.Proc,
					Digest(
						traces.Digest{Pass: local, Worker: int32(i), Batch: uint32(batch), Fetch: uint32(b)},
						indices,
						func(index int64) What { return k.Contains(pass, index) },
					),
				)
			}
			r.Add(w.Proc, traces.BatchFetch{Pass: local, Worker: int32(i), Batch: uint32(batch), Fetch: uint32(b), FetchNS: 1e6, Samples: 8})
			if stop && delivered > 0 {
				continue
			}
			next(batch, i, "ok")
			delivered++
			if !k.Eval && !k.Unknown {
				p.steps++
			}
		}
	}
	end := "dropped"
	if !stop {
		end = "exhausted"
		next(delivered, -1, "stop")
	}
	r.Add(p.Proc, traces.Pass{Loader: n, Pass: uint32(pass), Phase: "end", End: end, Delivered: uint32(delivered), SamplerEpoch: -1})
}

// Numbered names a sample by its index.
func Numbered(index int64) What { return What{Content: fmt.Sprint("sample ", index)} }

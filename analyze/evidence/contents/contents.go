// Package contents is what each fetch was asked for and what it gave: the indices
// of the first fetches, and digests of samples by the fetch that they are of.
package contents

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/evidence/bounded"
	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/hash"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for rules that ask what came of something that happened in a fetch.
var Source = &collect.Source[*Fetches]{
	Name:   "contents",
	Tables: []string{"batch_put", "digest", "batch_fetch"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Fetches] { return newCollector() },
}

// Fetches is the evidence of Source.
type Fetches struct {
	samples map[*timeline.WorkerPass][]Sample
	asked   map[*timeline.WorkerPass][]uint64
	sizes   map[*timeline.WorkerPass]int64
}

// Sample is one sample and the fetch that gave it.
type Sample struct {
	digests.Sample
	Fetch uint32
}

// What is kept: 5 MB of digests, and 4 KB of each worker's pass.
const (
	mostSamples = 1 << 16
	mostAsked   = 512
)

// share is one worker in one pass, as recorded: by the worker, or by the loader's process.
type share struct {
	part               *traces.Part
	proc, loader, pass uint32
	worker             int32
}

type kept struct {
	Sample
	of *share
}

// number decides whether a sample is kept: the same ones in all passes.
func (k *kept) number() uint64 { return numberOf(&k.Sample.Sample) }

func numberOf(s *digests.Sample) uint64 {
	if s.Index >= 0 {
		return uint64(s.Index)
	}
	return uint64(s.Position)
}

type collector struct {
	shares  map[share]*share
	samples bounded.Rows[kept]
	asked   map[share][]uint64 // hashes of the indices of each fetch
	sizes   map[share]int64    // samples fetched
}

func newCollector() *collector {
	return &collector{shares: map[share]*share{}, samples: bounded.New(mostSamples, (*kept).number), asked: map[share][]uint64{},
		sizes: map[share]int64{}}
}

// Add takes the rows of one batch.
func (c *collector) Add(b traces.Batch) {
	switch rows := b.Rows.(type) {
	case []traces.BatchPut:
		for i := range rows {
			if r := &rows[i]; r.First == 0 {
				k := share{b.Part, r.Proc, r.Loader, r.Pass, r.Worker}
				if list := c.asked[k]; len(list) < mostAsked {
					c.asked[k] = append(list, indices(r))
				}
			}
		}
	case []traces.Digest:
		for i := range rows {
			c.digest(b.Part, &rows[i])
		}
	case []traces.BatchFetch:
		for i := range rows {
			r := &rows[i]
			c.sizes[share{b.Part, r.Proc, r.Loader, r.Pass, r.Worker}] += int64(max(r.Samples, 0))
		}
	}
}

// indices is a hash of what a fetch is asked for; 0: nothing that tells samples apart.
func indices(r *traces.BatchPut) uint64 {
	if len(r.Indices) == 0 && r.Keys == "" {
		return 0
	}
	h := uint64(len(r.Indices)) + 1
	for _, i := range r.Indices {
		h = hash.Mix(h ^ uint64(i))
	}
	for _, b := range []byte(r.Keys) {
		h = hash.Mix(h ^ uint64(b))
	}
	return h | 1
}

func (c *collector) digest(part *traces.Part, r *traces.Digest) {
	k := share{part, r.Proc, r.Loader, r.Pass, r.Worker}
	of := c.shares[k]
	if of == nil {
		of = &k
		c.shares[k] = of
	}
	for s := range digests.Of(r) {
		if c.samples.Takes(numberOf(&s)) {
			c.samples.Add(kept{Sample{s, r.Fetch}, of})
		}
	}
}

// Merge takes over what was collected from other parts.
func (c *collector) Merge(other collect.Collector[*Fetches]) {
	o := other.(*collector)
	c.samples.Merge(&o.samples)
	for k, list := range o.asked {
		c.asked[k] = list
	}
	for k, n := range o.sizes {
		c.sizes[k] = n
	}
}

// Build sorts everything by worker and pass.
func (c *collector) Build(e *collect.Evidence) *Fetches {
	t := collect.Of(e, timeline.Source)
	f := &Fetches{map[*timeline.WorkerPass][]Sample{}, map[*timeline.WorkerPass][]uint64{}, map[*timeline.WorkerPass]int64{}}
	for _, k := range c.samples.Release() {
		if w := t.Worker(k.of.part, k.of.proc, k.of.loader, k.of.pass, k.of.worker); w != nil {
			f.samples[w] = append(f.samples[w], k.Sample)
		}
	}
	for _, list := range f.samples {
		slices.SortStableFunc(list, func(a, b Sample) int { return cmp.Compare(a.Position, b.Position) })
	}
	for k, n := range c.sizes {
		if w := t.Worker(k.part, k.proc, k.loader, k.pass, k.worker); w != nil {
			f.sizes[w] = n
		}
	}
	for _, l := range t.Loaders {
		for _, p := range l.Passes {
			for _, w := range p.Workers {
				f.asked[w] = c.asked[share{l.Process.Part, l.Process.Proc, p.Object, p.Recorded, int32(w.Number)}]
			}
		}
	}
	return f
}

// Samples that a worker fetched in a pass, as far as they were looked at, in their order.
func (f *Fetches) Samples(w *timeline.WorkerPass) []Sample { return f.samples[w] }

// Fetched is how many samples a worker fetched in a pass.
func (f *Fetches) Fetched(w *timeline.WorkerPass) int64 { return f.sizes[w] }

// Asked stands for what a fetch of a worker was asked for: equal numbers, the same
// indices in the same order. 0: of an IterableDataset, or not known.
func (f *Fetches) Asked(w *timeline.WorkerPass, fetch uint32) uint64 {
	if list := f.asked[w]; int64(fetch) < int64(len(list)) {
		return list[fetch]
	}
	return 0
}

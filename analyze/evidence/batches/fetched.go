package batches

import (
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Fetched is what each worker (or the main process) fetched in each pass.
var Fetched = &collect.Source[ByWorker[Fetches]]{
	Name:   "fetched batches",
	Tables: []string{"batch_fetch"},
	Proof:  []string{"batch_fetch"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[ByWorker[Fetches]] { return &fetched{byPart[share, Fetches]{}} },
}

// Fetches is what one worker fetched in one pass. Batches is 0 where no fetch of
// it is in the trace.
type Fetches struct {
	Sizes
	Samples int
}

type fetched struct{ shares byPart[share, Fetches] }

func (c *fetched) Add(b traces.Batch) {
	rows, _ := b.Rows.([]traces.BatchFetch)
	shares := c.shares.part(b.Part)
	for i := range rows {
		r := &rows[i]
		at(shares, share{key{r.Proc, r.Loader, r.Pass}, r.Worker}).add(r)
	}
}

func (f *Fetches) add(r *traces.BatchFetch) {
	batch := r.Batch
	if r.Worker < 0 { // it counts fetches, those that failed among them
		batch = uint32(f.Batches)
	}
	samples := int(max(r.Samples, 0))
	f.Sizes.add(batch, samples, r.Seq)
	f.Samples += samples
}

func (c *fetched) Merge(o collect.Collector[ByWorker[Fetches]]) { c.shares.merge(o.(*fetched).shares) }

func (c *fetched) Build(e *collect.Evidence) ByWorker[Fetches] {
	return byWorker(collect.Of(e, timeline.Source), c.shares)
}

// First is what the first fetch of each worker took, of an IterableDataset. It
// goes beside what was counted, so that a gap in it is none of a rule.
var First = &collect.Source[ByWorker[FirstFetch]]{
	Name:   "first fetches",
	Tables: []string{"worker"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[ByWorker[FirstFetch]] { return &first{byPart[share, FirstFetch]{}} },
}

// FirstFetch is what a worker did from iter() of its pass until its first batch,
// or until it had nothing to give.
type FirstFetch struct {
	CPU     int64 // ns; 0 not known
	Written int64 // bytes, by system calls; -1 not known
}

type first struct{ shares byPart[share, FirstFetch] }

func (c *first) Add(b traces.Batch) {
	rows, _ := b.Rows.([]traces.Worker)
	shares := c.shares.part(b.Part)
	for i := range rows {
		if r := &rows[i]; r.Phase == "first" {
			*at(shares, share{key{r.Proc, r.Loader, r.Pass}, r.Worker}) = FirstFetch{r.CPUNS, r.Written}
		}
	}
}

func (c *first) Merge(o collect.Collector[ByWorker[FirstFetch]]) { c.shares.merge(o.(*first).shares) }

func (c *first) Build(e *collect.Evidence) ByWorker[FirstFetch] {
	return byWorker(collect.Of(e, timeline.Source), c.shares)
}

// LeftOver is the samples that drop_last dropped in each worker.
var LeftOver = &collect.Source[ByWorker[Leftover]]{
	Name:   "left over samples",
	Tables: []string{"leftover"},
	Proof:  []string{"leftover"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[ByWorker[Leftover]] { return &leftover{byPart[share, Leftover]{}} },
}

// Leftover is samples that drop_last dropped in one worker, at the end of a pass.
type Leftover struct {
	Samples int
	Seq     uint64
}

type leftover struct{ shares byPart[share, Leftover] }

func (c *leftover) Add(b traces.Batch) {
	rows, _ := b.Rows.([]traces.Leftover)
	shares := c.shares.part(b.Part)
	for i := range rows {
		r := &rows[i]
		*at(shares, share{key{r.Proc, r.Loader, r.Pass}, r.Worker}) = Leftover{int(max(r.Samples, 0)), r.Seq}
	}
}

func (c *leftover) Merge(o collect.Collector[ByWorker[Leftover]]) {
	c.shares.merge(o.(*leftover).shares)
}

func (c *leftover) Build(e *collect.Evidence) ByWorker[Leftover] {
	return byWorker(collect.Of(e, timeline.Source), c.shares)
}

package timeline

import (
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// Given is a batch that a worker was asked for.
type Given struct {
	Batch   uint32
	TsNS    int64
	Seq     uint64  // of its first row in batch_put
	Indices []int64 // the first of them
	Count   int     // of samples; 0 unknown
	Keys    string  // instead of indices
}

// What is kept of the batches that a worker was asked for: it has no more than
// prefetch_factor of them before it, and a dead one is asked for a few more.
const (
	givenBatches = 16
	givenIndices = 32 // of each
)

func (ps *passRows) give(r *traces.BatchPut) {
	if ps.end != nil && ps.end.End == "exhausted" {
		return // all came back
	}
	if ps.given == nil {
		ps.given = map[int32][]Given{}
	}
	list := ps.given[r.Worker]
	if n := len(list); n > 0 && list[n-1].Batch == r.Batch {
		g := &list[n-1]
		g.Count += len(r.Indices)
		g.Indices = append(g.Indices, r.Indices[:min(len(r.Indices), givenIndices-len(g.Indices))]...)
		return
	}
	if len(list) == givenBatches {
		list = slices.Delete(list, 0, 1)
	}
	ps.given[r.Worker] = append(list, Given{Batch: r.Batch, TsNS: r.TsNS, Seq: r.Seq, Count: len(r.Indices), Keys: r.Keys,
		Indices: slices.Clone(r.Indices[:min(len(r.Indices), givenIndices)])})
}

// InFlight is the batches that a worker was asked for and did not hand over.
// It works on them in this order. all is false if it is not known which it
// handed over last, because it was not watched from inside.
func (w *WorkerPass) InFlight() (batches []Given, all bool) {
	if w == nil {
		return nil, false
	}
	for _, g := range w.given {
		if int64(g.Batch) > w.handed {
			batches = append(batches, g)
		}
	}
	return batches, w.Process.Hooked()
}

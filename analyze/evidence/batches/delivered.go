package batches

import (
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Delivered is what reached the training loop in each pass.
var Delivered = &collect.Source[ByPass[Deliveries]]{
	Name:   "delivered batches",
	Tables: []string{"batch_next"},
	Proof:  []string{"batch_next"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[ByPass[Deliveries]] { return &delivered{byPart[key, Deliveries]{}} },
}

// Deliveries is what reached the training loop in one pass.
type Deliveries struct {
	Rows   Sizes  // of the batches whose first dimension is known, numbered as they were delivered, from 0
	Hidden int    // those of which it is not
	Seq    uint64 // of the last row in batch_next

	moments moments
}

// delivered is the collector of Delivered.
type delivered struct{ passes byPart[key, Deliveries] }

func (c *delivered) Add(b traces.Batch) {
	rows, _ := b.Rows.([]traces.BatchNext)
	passes := c.passes.part(b.Part)
	for i := range rows {
		if r := &rows[i]; r.Status != "exit" {
			at(passes, key{r.Proc, r.Loader, r.Pass}).next(r)
		}
	}
}

func (d *Deliveries) next(r *traces.BatchNext) {
	d.Seq = r.Seq
	if r.Status == "ok" {
		d.moments.add(r.Batch, r.Steps)
	}
	switch {
	case r.Status != "ok":
	case r.Watched && r.Rows >= 0:
		d.Rows.add(uint32(d.Rows.Batches+d.Hidden), int(r.Rows), r.Seq)
	default:
		d.Hidden++
	}
}

func (c *delivered) Merge(other collect.Collector[ByPass[Deliveries]]) {
	c.passes.merge(other.(*delivered).passes)
}

func (c *delivered) Build(e *collect.Evidence) ByPass[Deliveries] {
	return byPass(collect.Of(e, timeline.Source), c.passes)
}

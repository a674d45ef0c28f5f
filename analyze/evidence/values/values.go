// Package values is what samples contain and what their datasets hold: digests
// of samples by their index, lengths and containers of datasets, samples that
// drop_last dropped.
package values

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for the rules that compare contents.
var Source = &collect.Source[*Contents]{
	Name:   "values",
	Tables: []string{"loader", "pass", "batch_put", "dataset", "attribute", "digest", "leftover"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Contents] { return &Contents{parts: map[*traces.Part]*part{}} },
}

// Contents is the evidence of Source.
type Contents struct {
	parts  map[*traces.Part]*part
	held   int  // samples with a digest that are kept
	halved uint // of all indices those are kept whose hash begins with so many zeros

	built  *timeline.Timeline // that samples are sorted for
	passes map[*timeline.Pass][]Sample
}

type part struct {
	streams    map[streamKey][]Sample
	asked      map[passKey]*Asked
	begins     map[passKey]traces.Pass
	ends       map[passKey]traces.Pass
	plain      map[loaderKey]bool // loaders whose indices need not be kept: no distributed sampler
	datasets   map[datasetKey]traces.Dataset
	containers map[uint32][]traces.Attribute // by process
	leftovers  map[streamKey]Leftover
}

type (
	loaderKey  struct{ proc, loader uint32 }
	passKey    struct{ proc, loader, pass uint32 }
	datasetKey struct{ proc, dataset uint32 }
)

// streamKey is a worker's share of a pass, as the worker counts.
type streamKey struct {
	passKey
	worker int32
}

// Add takes the rows of one batch.
func (c *Contents) Add(b traces.Batch) {
	p := c.part(b.Part)
	switch rows := b.Rows.(type) {
	case []traces.Loader:
		each(rows, p.forget)
	case []traces.Pass:
		each(rows, p.open)
	case []traces.BatchPut:
		each(rows, p.put)
	case []traces.Dataset:
		each(rows, func(r *traces.Dataset) { p.datasets[datasetKey{r.Proc, r.Dataset}] = *r })
	case []traces.Attribute:
		each(rows, p.hold)
	case []traces.Digest:
		each(rows, func(r *traces.Digest) { c.digest(p, r) })
		c.bound()
	case []traces.Leftover:
		each(rows, func(r *traces.Leftover) {
			p.leftovers[streamKey{passKey{r.Proc, r.Loader, r.Pass}, r.Worker}] = Leftover{int(r.Samples), r.Seq}
		})
	}
}

func each[R any](rows []R, do func(*R)) {
	for i := range rows {
		do(&rows[i])
	}
}

// Build is the rows as they were collected.
func (c *Contents) Build(*collect.Evidence) *Contents { return c }

// Merge takes over what was collected from other parts.
func (c *Contents) Merge(other collect.Collector[*Contents]) {
	o := other.(*Contents)
	maps.Copy(c.parts, o.parts)
	c.halved = max(c.halved, o.halved)
	c.held = 0
	for _, p := range c.parts {
		c.held += p.thin(c.halved)
	}
	c.bound()
}

func (c *Contents) part(of *traces.Part) *part {
	p := c.parts[of]
	if p == nil {
		p = &part{
			streams: map[streamKey][]Sample{}, asked: map[passKey]*Asked{}, begins: map[passKey]traces.Pass{}, ends: map[passKey]traces.Pass{},
			plain: map[loaderKey]bool{}, datasets: map[datasetKey]traces.Dataset{}, containers: map[uint32][]traces.Attribute{},
			leftovers: map[streamKey]Leftover{},
		}
		c.parts[of] = p
	}
	return p
}

// Recorded reports whether the hook that wrote a loader knew of contents: older
// ones wrote none, and that says nothing.
func Recorded(l *traces.Loader) bool { return l.Batched != "" }

// Dataset is that of a loader; ok is false if it is put together of others, or
// was not recorded.
func (c *Contents) Dataset(p *timeline.Process, l *traces.Loader) (row traces.Dataset, ok bool) {
	if rows := c.parts[p.Part]; rows != nil {
		row, ok = rows.datasets[datasetKey{p.Proc, l.DatasetID}]
	}
	return row, ok
}

// Leftover is samples that drop_last dropped in one worker.
type Leftover struct {
	Samples int
	Seq     uint64
}

// Leftovers are those of the workers of all passes.
func (c *Contents) Leftovers(t *timeline.Timeline) map[*timeline.WorkerPass]Leftover {
	found := map[*timeline.WorkerPass]Leftover{}
	for of, p := range c.parts {
		for k, left := range p.leftovers {
			if w := t.Worker(of, k.proc, k.loader, k.pass, k.worker); w != nil {
				found[w] = left
			}
		}
	}
	return found
}

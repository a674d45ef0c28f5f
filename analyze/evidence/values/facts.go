// Package values is what samples contain and what their datasets hold: digests
// of samples by their index, values of attributes in the training process and in
// its workers, samples that drop_last dropped.
package values

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for the rules that compare contents.
var Source = &collect.Source[*Contents]{
	Name:   "contents",
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
	attributes map[uint32]*attributes // by process
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
		for i := range rows {
			r := &rows[i]
			if r.SamplerReplicas <= 0 {
				k := loaderKey{r.Proc, r.Loader}
				p.plain[k] = true
				p.forget(k)
			}
		}
	case []traces.Pass:
		for i := range rows {
			r := &rows[i]
			if r.Phase == "end" {
				p.ends[passKey{r.Proc, r.Loader, r.Pass}] = *r
			} else {
				p.begins[passKey{r.Proc, r.Loader, r.Pass}] = *r
			}
		}
	case []traces.BatchPut:
		for i := range rows {
			p.put(&rows[i])
		}
	case []traces.Dataset:
		for i := range rows {
			p.datasets[datasetKey{rows[i].Proc, rows[i].Dataset}] = rows[i]
		}
	case []traces.Attribute:
		for i := range rows {
			r := &rows[i]
			if p.attributes[r.Proc] == nil {
				p.attributes[r.Proc] = &attributes{}
			}
			p.attributes[r.Proc].add(r)
		}
	case []traces.Digest:
		for i := range rows {
			c.digest(p, &rows[i])
		}
		c.bound()
	case []traces.Leftover:
		for i := range rows {
			r := &rows[i]
			p.leftovers[streamKey{passKey{r.Proc, r.Loader, r.Pass}, r.Worker}] = Leftover{int(r.Samples), r.Seq}
		}
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
		p = &part{map[streamKey][]Sample{}, map[passKey]*Asked{}, map[passKey]traces.Pass{}, map[passKey]traces.Pass{}, map[loaderKey]bool{}, map[datasetKey]traces.Dataset{},
			map[uint32]*attributes{}, map[streamKey]Leftover{}}
		c.parts[of] = p
	}
	return p
}

// Recorded reports whether the hook that wrote a loader knew of contents: older
// ones wrote none, and that says nothing.
func Recorded(l *traces.Loader) bool { return l.Batched != "" }

// Begin is the row that begins a pass; ok is false if it is lost.
func (c *Contents) Begin(p *timeline.Pass) (row traces.Pass, ok bool) {
	return find(c, p, func(rows *part) map[passKey]traces.Pass { return rows.begins })
}

// End is the row that ends a pass.
func (c *Contents) End(p *timeline.Pass) (row traces.Pass, ok bool) {
	return find(c, p, func(rows *part) map[passKey]traces.Pass { return rows.ends })
}

// Asked is what a pass asked for; nil if it asked for nothing, or for keys.
func (c *Contents) Asked(p *timeline.Pass) *Asked {
	a, _ := find(c, p, func(rows *part) map[passKey]*Asked { return rows.asked })
	return a
}

func find[T any](c *Contents, p *timeline.Pass, in func(*part) map[passKey]T) (found T, ok bool) {
	l := p.Loader.Process
	if rows := c.parts[l.Part]; rows != nil {
		found, ok = in(rows)[passKey{l.Proc, p.Object, p.Recorded}]
	}
	return found, ok
}

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

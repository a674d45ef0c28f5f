// Package deliveries is how many samples the batches of each pass had, which of
// them reached the training loop, and after which of those an optimizer stepped.
package deliveries

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for the rules that count batches and samples.
var Source = &collect.Source[*Deliveries]{
	Name:   "deliveries",
	Tables: []string{"batch_put", "batch_fetch", "batch_next"},
	Proof:  []string{"batch_put", "batch_fetch", "batch_next"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Deliveries] { return &Deliveries{parts: map[*traces.Part]*part{}} },
}

// Tables is what tells the batches of a pass; a gap in one of them is never
// clean.
var Tables = []string{"process", "loader", "pass", "worker", "batch_put", "batch_fetch", "batch_next"}

// Deliveries is the evidence of Source.
type Deliveries struct{ parts map[*traces.Part]*part }

type part struct {
	passes  map[passKey]*Pass
	fetched map[fetchKey]*Fetched
	open    map[uint32][]*Pass // by process: passes with a delivery whose use is not known
}

type passKey struct{ proc, loader, pass uint32 }

type fetchKey struct {
	passKey
	worker int32
}

// Add takes the rows of one batch.
func (d *Deliveries) Add(b traces.Batch) {
	p := d.parts[b.Part]
	if p == nil {
		p = &part{map[passKey]*Pass{}, map[fetchKey]*Fetched{}, map[uint32][]*Pass{}}
		d.parts[b.Part] = p
	}
	switch rows := b.Rows.(type) {
	case []traces.BatchPut:
		for i := range rows {
			r := &rows[i]
			p.pass(passKey{r.Proc, r.Loader, r.Pass}).put(r)
		}
	case []traces.BatchFetch:
		for i := range rows {
			r := &rows[i]
			k := fetchKey{passKey{r.Proc, r.Loader, r.Pass}, r.Worker}
			f := p.fetched[k]
			if f == nil {
				f = &Fetched{}
				p.fetched[k] = f
			}
			f.add(r)
		}
	case []traces.BatchNext:
		for i := range rows {
			r := &rows[i]
			p.next(r, p.pass(passKey{r.Proc, r.Loader, r.Pass}))
		}
	}
}

// next takes a row of a pass. The first one of a pass tells what became of the
// last batches of those that the loop has left before.
func (p *part) next(r *traces.BatchNext, ps *Pass) {
	if ps.calls == 0 {
		open := p.open[r.Proc][:0]
		for _, left := range p.open[r.Proc] {
			switch {
			case !left.last.open:
			case r.Steps > left.last.steps || left.loader == r.Loader:
				left.use(r.Steps)
			default: // two loaders side by side: the step is still to come
				open = append(open, left)
			}
		}
		ps.loader = r.Loader
		p.open[r.Proc] = append(open, ps)
	}
	ps.next(r)
}

// Build is the rows as they were collected.
func (d *Deliveries) Build(*collect.Evidence) *Deliveries { return d }

// Merge takes over what another accumulator has collected from other parts.
func (d *Deliveries) Merge(other collect.Collector[*Deliveries]) {
	maps.Copy(d.parts, other.(*Deliveries).parts)
}

func (p *part) pass(k passKey) *Pass {
	ps := p.passes[k]
	if ps == nil {
		ps = &Pass{}
		p.passes[k] = ps
	}
	return ps
}

// Of is what is known of a pass.
func (d *Deliveries) Of(pass *timeline.Pass) *Pass {
	l := pass.Loader.Process
	if p := d.parts[l.Part]; p != nil {
		if ps := p.passes[passKey{l.Proc, pass.Object, pass.Recorded}]; ps != nil {
			ps.flush()
			return ps
		}
	}
	return &Pass{}
}

// Fetches is what each worker fetched in each pass. A worker is missing if no
// batch of it is in the trace.
func (d *Deliveries) Fetches(t *timeline.Timeline) map[*timeline.WorkerPass]*Fetched {
	found := map[*timeline.WorkerPass]*Fetched{}
	for tp, p := range d.parts {
		for k, f := range p.fetched {
			if w := t.Worker(tp, k.proc, k.loader, k.pass, k.worker); w != nil {
				found[w] = f
			}
		}
	}
	return found
}

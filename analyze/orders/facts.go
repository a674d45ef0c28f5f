// Package orders is what the rules about the order of samples have in common:
// the order of each pass, who decided on it, and which passes of one training
// went through the data in one and the same order.
package orders

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is what the rules need.
var Source = &collect.Source[*Orders]{
	Name:   "orders",
	Tables: []string{"pass", "batch_put", "set_epoch"},
	Proof:  []string{"batch_put", "optimizer"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Orders] { return &Orders{parts: map[*traces.Part]*part{}} },
}

// Tables is what the rules read; a gap in one of them is never clean.
var Tables = []string{"process", "loader", "pass", "batch_put", "batch_next", "optimizer"}

// Orders is the order of each pass.
type Orders struct {
	parts map[*traces.Part]*part
}

type part struct {
	begins    map[passKey]traces.Pass
	sequences map[passKey]*Sequence
	told      map[samplerKey][]traces.SetEpoch
}

type samplerKey struct{ proc, sampler uint32 }

type passKey struct{ proc, loader, pass uint32 }

// Add takes the rows of one batch.
func (o *Orders) Add(b traces.Batch) {
	p := o.parts[b.Part]
	if p == nil {
		p = &part{begins: map[passKey]traces.Pass{}, sequences: map[passKey]*Sequence{}, told: map[samplerKey][]traces.SetEpoch{}}
		o.parts[b.Part] = p
	}
	switch rows := b.Rows.(type) {
	case []traces.Pass:
		for i := range rows {
			if r := &rows[i]; r.Phase == "begin" {
				p.begins[passKey{r.Proc, r.Loader, r.Pass}] = *r
			}
		}
	case []traces.SetEpoch:
		for i := range rows {
			k := samplerKey{rows[i].Proc, rows[i].SamplerID}
			p.told[k] = append(p.told[k], rows[i])
		}
	case []traces.BatchPut:
		for i := range rows {
			r := &rows[i]
			k := passKey{r.Proc, r.Loader, r.Pass}
			s := p.sequences[k]
			if s == nil {
				s = newSequence(r)
				p.sequences[k] = s
			}
			s.add(r)
		}
	}
}

// Build is the rows as they were collected.
func (o *Orders) Build(*collect.Evidence) *Orders { return o }

// Merge takes over what was collected from other parts.
func (o *Orders) Merge(other collect.Collector[*Orders]) { maps.Copy(o.parts, other.(*Orders).parts) }

// Package orders is what the rules about the order of samples have in common:
// the order of each pass, who decided on it, and which passes of one training
// went through the data in one and the same order.
package orders

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Facts is what the rules need.
var Facts = &detect.Facts{
	Name:  "orders",
	Needs: []string{"pass", "batch_put", "rng_slot", "rng_state"},
	New:   func() detect.Accumulator { return &Orders{parts: map[*traces.Part]*part{}} },
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
	roles     map[slotKey]string
	draws     map[drawKey]bool
}

type passKey struct{ proc, loader, pass uint32 }

type slotKey struct{ proc, slot uint32 }

// drawKey is a slot that a fetch of a worker in a pass drew from.
type drawKey struct {
	slotKey
	loader, pass uint32
	worker       int32
}

// Add takes the rows of one batch.
func (o *Orders) Add(b traces.Batch) {
	p := o.parts[b.Part]
	if p == nil {
		p = &part{begins: map[passKey]traces.Pass{}, sequences: map[passKey]*Sequence{}, roles: map[slotKey]string{}, draws: map[drawKey]bool{}}
		o.parts[b.Part] = p
	}
	switch rows := b.Rows.(type) {
	case []traces.Pass:
		for i := range rows {
			if r := &rows[i]; r.Phase == "begin" {
				p.begins[passKey{r.Proc, r.Loader, r.Pass}] = *r
			}
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
	case []traces.RngSlot:
		for i := range rows {
			p.roles[slotKey{rows[i].Proc, rows[i].Slot}] = rows[i].Role
		}
	case []traces.RngState:
		for i := range rows {
			if r := &rows[i]; r.When == "after" {
				p.draws[drawKey{slotKey{r.Proc, r.Slot}, r.Loader, r.Pass, r.Worker}] = true
			}
		}
	}
}

// Merge takes over what was collected from other parts.
func (o *Orders) Merge(other detect.Accumulator) { maps.Copy(o.parts, other.(*Orders).parts) }

// Random tells in which passes a fetch drew random numbers that can decide what
// is at an index: all but those of transforms and of collate functions.
func (o *Orders) Random(t *timeline.Timeline) map[*timeline.Pass]bool {
	out := map[*timeline.Pass]bool{}
	for tp, p := range o.parts {
		for k := range p.draws {
			switch p.roles[k.slotKey] {
			case "transform", "collate", "order":
				continue
			}
			if w := t.Worker(tp, k.proc, k.loader, k.pass, k.worker); w != nil {
				out[w.Pass] = true
			}
		}
	}
	return out
}

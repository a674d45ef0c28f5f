package attributes

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// HeldSource is the memory, queues and the like that the workers of a stream
// have in common. It goes beside what was counted, so that a gap in it is none of
// a rule.
var HeldSource = &collect.Source[*Held]{
	Name:   "what workers have in common",
	Tables: []string{"attribute"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Held] { return &Held{of: map[heldKey][]traces.Attribute{}} },
}

// Held is the evidence of HeldSource.
type Held struct {
	timeline *timeline.Timeline
	of       map[heldKey][]traces.Attribute
}

type heldKey struct {
	processKey
	object uint32
}

// mostHeld rows of a DataLoader object are kept.
const mostHeld = 64

// Add takes the rows of one batch.
func (h *Held) Add(b traces.Batch) {
	list, _ := b.Rows.([]traces.Attribute)
	for i := range list {
		if r := &list[i]; r.When == "held" {
			k := heldKey{processKey{b.Part, r.Proc}, r.Loader}
			if len(h.of[k]) < mostHeld {
				h.of[k] = append(h.of[k], *r)
			}
		}
	}
}

// Merge takes over the rows of other parts.
func (h *Held) Merge(other collect.Collector[*Held]) { maps.Copy(h.of, other.(*Held).of) }

// Build is the rows as they were collected.
func (h *Held) Build(e *collect.Evidence) *Held {
	h.timeline = collect.Of(e, timeline.Source)
	return h
}

// Of is by what the workers of a DataLoader object may work for one another;
// false: it is not known, or not all of it.
func (h *Held) Of(l *timeline.Loader, object uint32) ([]traces.Attribute, bool) {
	if h.timeline.Losses(l, []string{"attribute"}) != "" {
		return nil, false
	}
	return h.of[heldKey{processKey{l.Process.Part, l.Process.Proc}, object}], true
}

// Package draws finds out which random numbers were drawn from which
// generator in which fetch, and which of them are the same numbers.
//
// A generator's states are observed around fetches. Two states that stepping
// joins enclose raw outputs, an interval; two that it does not join have a
// re-seeding between them, and enclose nothing. Intervals lie on streams: all
// states that stepping can reach from each other. What two intervals share of
// one stream was drawn twice.
package draws

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is what the rules about random numbers share.
var Source = &collect.Source[*Streams]{
	Name:   "streams",
	Tables: []string{"rng_slot", "rng_state"},
	Proof:  []string{"rng_slot", "rng_state", "batch_fetch"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Streams] { return New(DefaultBudget) },
}

// DefaultBudget is how many blocks of MT19937 are stepped for one report, about
// 15 seconds of one core: enough for 19 billion draws. What is left then is
// reported as not compared.
const DefaultBudget = 30_000_000

// Streams collects the rows of generators and answers Draws.
type Streams struct {
	parts  map[*traces.Part]*partLogs
	budget int64

	resolve sync.Once
	drawn   []*Draws
	streams placement
	keys    *keyStore
	// Exhausted: the budget ended before everything was compared.
	Exhausted bool
	// Nameless counts states of generators whose names are not in the trace.
	Nameless int
}

// New is an empty Streams that may step so many blocks.
func New(budget int64) *Streams {
	return &Streams{parts: map[*traces.Part]*partLogs{}, budget: budget}
}

type partLogs struct {
	slots    map[slotKey]*Slot
	logs     map[logKey]*log
	next     uint64                         // seq that comes next in rng_state
	hole     uint64                         // how many gaps were met so far
	raws     map[uint32]map[rng.ID]*rng.Key // whole blocks, by process
	nameless int                            // states without a slot
}

type slotKey struct{ proc, slot uint32 }

// logKey is one generator in one pass of one process. A process has one number
// for all generators that look alike to their program, so the loader counts.
type logKey struct {
	slotKey
	loader, pass uint32
	worker       int32
}

// Slot is one generator as its program names it.
type Slot struct {
	Path, Kind, Class, Owner, Role string
	File                           string
	Line                           int32
}

// Add takes the rows of one batch.
func (s *Streams) Add(b traces.Batch) {
	p := s.parts[b.Part]
	if p == nil {
		p = &partLogs{slots: map[slotKey]*Slot{}, logs: map[logKey]*log{}, raws: map[uint32]map[rng.ID]*rng.Key{}}
		s.parts[b.Part] = p
	}
	switch rows := b.Rows.(type) {
	case []traces.RngSlot:
		for i := range rows {
			r := &rows[i]
			p.slots[slotKey{r.Proc, r.Slot}] = &Slot{cleanPath(r.Path), r.Kind, r.Class, r.Owner, r.Role, r.File, r.Line}
		}
	case []traces.RngState:
		for i := range rows {
			p.state(&rows[i])
		}
	}
}

// Build is the rows as they were collected.
func (s *Streams) Build(*collect.Evidence) *Streams { return s }

// Merge takes over what was collected from other parts.
func (s *Streams) Merge(o collect.Collector[*Streams]) { maps.Copy(s.parts, o.(*Streams).parts) }

func (p *partLogs) state(r *traces.RngState) {
	if r.Seq != p.next {
		p.hole++
	}
	p.next = r.Seq + 1
	slot := p.slots[slotKey{r.Proc, r.Slot}]
	if slot == nil {
		p.nameless++
		return
	}
	if slot.Role == "order" || r.When == "fork" || r.When == "task" || r.When == "end" {
		return // must agree between workers and ranks; children that are no workers
	}
	key := logKey{slotKey{r.Proc, r.Slot}, r.Loader, r.Pass, r.Worker}
	l := p.logs[key]
	if l == nil {
		l = &log{slot: slot, key: key, hole: p.hole}
		p.logs[key] = l
	}
	o := observation{seq: uint32(r.Seq), window: r.Fetch, when: whenOf(r.When), micros: l.elapsed(r), gap: l.hole != p.hole}
	l.hole = p.hole
	if slot.Kind == rng.KindMT19937 {
		p.mersenne(l, o, r)
	} else {
		l.words(o, r.Raw)
	}
}

// all logs in an order that does not depend on the order of merging.
func (s *Streams) all(each func(*traces.Part, *log)) {
	parts := slices.SortedFunc(maps.Keys(s.parts), func(a, b *traces.Part) int {
		return cmp.Or(cmp.Compare(a.Trace, b.Trace), cmp.Compare(a.Name, b.Name))
	})
	for _, part := range parts {
		logs := s.parts[part].logs
		keys := slices.SortedFunc(maps.Keys(logs), func(a, b logKey) int {
			return cmp.Or(cmp.Compare(a.proc, b.proc), cmp.Compare(a.loader, b.loader), cmp.Compare(a.pass, b.pass), cmp.Compare(a.slot, b.slot), cmp.Compare(a.worker, b.worker))
		})
		for _, k := range keys {
			each(part, logs[k])
		}
	}
}

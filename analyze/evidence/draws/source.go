package draws

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is what the rules about random numbers share.
var Source = &collect.Source[*Streams]{
	Name:   "draws",
	Tables: []string{"rng_slot", "rng_state", "rng_search"},
	Proof:  []string{"rng_slot", "rng_state", "batch_fetch", "batch_put"}, // the latter: what else two draws have in common
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Streams] { return New(DefaultBudget) },
}

// DefaultBudget is how many blocks of MT19937 are stepped for one report, about
// 15 seconds of one core: enough for 19 billion draws. What is left then is
// reported as not compared.
const DefaultBudget = 30_000_000

// Collector takes the rows of generators. States of few words are joined as they
// come, those of Mersenne twisters are kept.
type Collector struct {
	parts  map[*traces.Part]*partLogs
	budget int64
}

// New is a Collector whose evidence may cost so many steps of a block.
func New(budget int64) *Collector {
	return &Collector{parts: map[*traces.Part]*partLogs{}, budget: budget}
}

type partLogs struct {
	slots    map[slotKey]*Slot
	logs     map[logKey]*log
	moved    map[served]*fetchSet
	next     uint64                         // seq that comes next in rng_state
	hole     uint64                         // how many gaps were met so far
	raws     map[uint32]map[rng.ID]*rng.Key // whole blocks, by process
	searches []search
	nameless int   // states without a slot
	outputs  int64 // of SFC64 that may still be stepped
	spent    bool  // more would have had to be
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
func (c *Collector) Add(b traces.Batch) {
	p := c.parts[b.Part]
	if p == nil {
		p = &partLogs{slots: map[slotKey]*Slot{}, logs: map[logKey]*log{}, moved: map[served]*fetchSet{},
			raws: map[uint32]map[rng.ID]*rng.Key{}, outputs: c.budget * outputsPerBlock}
		c.parts[b.Part] = p
	}
	switch rows := b.Rows.(type) {
	case []traces.RngSlot:
		for i := range rows {
			r := &rows[i]
			p.slots[slotKey{r.Proc, r.Slot}] = &Slot{cleanPath(r.Path), r.Kind, r.Class, r.Owner, r.Role, r.File, r.Line}
		}
	case []traces.RngSearch:
		for i := range rows {
			p.search(&rows[i])
		}
	case []traces.RngState:
		for i := range rows {
			p.state(&rows[i])
		}
	}
}

// Merge takes over what was collected from other parts.
func (c *Collector) Merge(o collect.Collector[*Streams]) { maps.Copy(c.parts, o.(*Collector).parts) }

// Build resolves what was collected.
func (c *Collector) Build(e *collect.Evidence) *Streams {
	return c.Resolve(collect.Of(e, timeline.Source))
}

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
	if r.When == "after" || r.When == "found" {
		p.move(served{r.Proc, r.Loader, r.Pass, r.Worker}, r.Fetch)
	}
	child, fetch := r.Loader == 0 && r.Worker < 0, r.Fetch
	switch {
	case slot.Role == "order": // must agree between workers and ranks
		return
	case !child && (r.When == "fork" || r.When == "task" || r.When == "end"):
		return
	case child && r.When == "task": // they count from 1
		fetch = max(fetch, 1) - 1
	}
	key := logKey{slotKey{r.Proc, r.Slot}, r.Loader, r.Pass, r.Worker}
	l := p.logs[key]
	if l == nil {
		l = &log{slot: slot, key: key, hole: p.hole}
		p.logs[key] = l
	}
	o := observation{seq: uint32(r.Seq), fetch: fetch, when: whenOf(r.When), micros: l.elapsed(r), gap: l.hole != p.hole}
	l.hole = p.hole
	if slot.Kind == rng.KindMT19937 {
		p.mersenne(l, o, r)
	} else {
		l.words(o, r.Raw, p)
	}
}

func (p *partLogs) move(w served, fetch uint32) {
	set := p.moved[w]
	if set == nil {
		set = new(fetchSet)
		p.moved[w] = set
	}
	set.add(fetch)
}

// all logs in an order that does not depend on the order of merging.
func (c *Collector) all(each func(*traces.Part, *log)) {
	parts := slices.SortedFunc(maps.Keys(c.parts), func(a, b *traces.Part) int {
		return cmp.Or(cmp.Compare(a.Trace, b.Trace), cmp.Compare(a.Name, b.Name))
	})
	for _, part := range parts {
		logs := c.parts[part].logs
		keys := slices.SortedFunc(maps.Keys(logs), func(a, b logKey) int {
			return cmp.Or(cmp.Compare(a.proc, b.proc), cmp.Compare(a.loader, b.loader), cmp.Compare(a.pass, b.pass),
				cmp.Compare(a.slot, b.slot), cmp.Compare(a.worker, b.worker))
		})
		for _, k := range keys {
			each(part, logs[k])
		}
	}
}

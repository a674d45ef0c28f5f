// Package memory is how much of what forked workers inherit they end up having
// to themselves, what workers that are not forked are sent, and how that compares
// with the memory there is. The kernel tier counts copies (table cow), without
// it the workers tell (table private).
package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is what forked workers copied of what they had inherited.
var Source = &collect.Source[*Memory]{
	Name:   "memory",
	Tables: []string{"host", "batch_next", "extent", "private", "cow"},
	Proof:  []string{"extent", "private", "cow"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source, LimitSource, LookSource},
	New:    func() collect.Collector[*Memory] { return &collected{map[processKey]*rows{}, map[*traces.Part]int64{}} },
}

// Memory is the evidence of Source.
type Memory struct {
	*collected
	limits  *Limits
	looks   *Looks
	rounds  map[int][]Round // by loader
	workers map[*timeline.Process]Worker
	counted map[*traces.Part]bool // the kernel counted copies in it
}

// Worker is a worker process among those that were started with it.
type Worker struct {
	*WorkerMemory
	Set *WorkerSet
}

// collected is the rows that tell of copies.
type collected struct {
	rows  map[processKey]*rows
	pages map[*traces.Part]int64 // size of a page
}

type processKey struct {
	part *traces.Part
	proc uint32
}

// rows of one process.
type rows struct {
	extents   []traces.Extent
	private   []traces.Private
	cow       []traces.Cow
	delivered []int64 // when it was handed batches, thinned out
}

// deliverySpacing thins out the times of deliveries: what is asked is whether
// there was one between two looks at a process, which are about a second apart.
const deliverySpacing = 100_000_000 // ns

// Add takes the rows of one batch.
func (c *collected) Add(b traces.Batch) {
	switch all := b.Rows.(type) {
	case []traces.Host:
		for i := range all {
			c.pages[b.Part] = all[i].PageSize
		}
	case []traces.BatchNext:
		for i := range all {
			if all[i].Status == "ok" {
				c.of(b.Part, all[i].Proc).deliver(all[i].TsNS)
			}
		}
	case []traces.Extent:
		for i := range all {
			r := c.of(b.Part, all[i].Proc)
			r.extents = append(r.extents, all[i])
		}
	case []traces.Private:
		for i := range all {
			r := c.of(b.Part, all[i].Proc)
			r.private = append(r.private, all[i])
		}
	case []traces.Cow:
		for i := range all {
			r := c.of(b.Part, all[i].Proc)
			r.cow = append(r.cow, all[i])
		}
	}
}

// of makes room for the rows of a process.
func (c *collected) of(part *traces.Part, proc uint32) *rows {
	k := processKey{part, proc}
	if c.rows[k] == nil {
		c.rows[k] = &rows{}
	}
	return c.rows[k]
}

// have is the rows of a process; there may be none.
func (c *collected) have(p *timeline.Process) *rows {
	if r := c.rows[processKey{p.Part, p.Proc}]; r != nil {
		return r
	}
	return &rows{}
}

// Merge takes over what was collected of other parts.
func (c *collected) Merge(other collect.Collector[*Memory]) {
	o := other.(*collected)
	maps.Copy(c.rows, o.rows)
	maps.Copy(c.pages, o.pages)
}

// Build measures the workers of all loaders.
func (c *collected) Build(e *collect.Evidence) *Memory {
	m := &Memory{collected: c, limits: collect.Of(e, LimitSource), looks: collect.Of(e, LookSource),
		rounds: map[int][]Round{}, workers: map[*timeline.Process]Worker{}, counted: map[*traces.Part]bool{}}
	for k, r := range c.rows {
		if len(r.cow) > 0 {
			m.counted[k.part] = true
		}
	}
	for _, ranks := range collect.Of(e, timeline.Source).ByLoader() {
		var rounds []Round
		for _, l := range ranks {
			for i, set := range m.sets(l) {
				if i == len(rounds) {
					rounds = append(rounds, nil)
				}
				rounds[i] = append(rounds[i], set)
			}
		}
		m.rounds[ranks.ID()] = rounds
	}
	return m
}

// Rounds of a loader's workers, in their order.
func (m *Memory) Rounds(ranks timeline.Ranks) []Round { return m.rounds[ranks.ID()] }

// Worker is what is known of a worker process; ok is false if it is none.
func (m *Memory) Worker(p *timeline.Process) (w Worker, ok bool) {
	w, ok = m.workers[p]
	return w, ok
}

// Counted reports whether the kernel counted copies in a part: then a process
// without counts has copied nothing.
func (m *Memory) Counted(part *traces.Part) bool { return m.counted[part] }

// PageSize of a part's machine.
func (c *collected) PageSize(part *traces.Part) int64 { return cmp.Or(c.pages[part], 4096) }

func (r *rows) deliver(ts int64) {
	if n := len(r.delivered); n == 0 || ts-r.delivered[n-1] >= deliverySpacing {
		r.delivered = append(r.delivered, ts)
	}
}

// deliveredBetween reports whether the process was handed a batch between two
// times.
func (r *rows) deliveredBetween(from, to int64) bool {
	i, _ := slices.BinarySearch(r.delivered, from)
	return i < len(r.delivered) && r.delivered[i] <= to
}

func ref(part *traces.Part, table string, seq uint64) finding.Ref {
	return finding.Ref{Part: part.Name, Table: table, Seq: seq}
}

// Package memory is how much of what forked workers inherit they end up having
// to themselves: what each worker of each pass copied of the dataset's Python
// objects, what else it copied, and how that compares with the memory there is.
// The kernel tier counts it (table cow), without it the workers tell (table
// private).
package memory

import (
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for all rules about memory.
var Source = &collect.Source[*Memory]{
	Name:   "memory",
	Tables: []string{"host", "limit", "worker", "batch_next", "memory", "extent", "private", "cow"},
	Proof:  []string{"limit", "extent", "private", "cow"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Memory] { return &Memory{parts: map[*traces.Part]*part{}} },
}

// Tables is what the rules read of a worker's memory; a gap in one of them is
// never clean.
var Tables = []string{"process", "loader", "pass", "worker", "limit", "extent", "private", "cow"}

// Memory is the evidence of Source.
type Memory struct{ parts map[*traces.Part]*part }

type part struct {
	total   int64 // memory of the machine; 0 unknown
	totalAt uint64
	page    int64
	limits  []traces.Limit
	extents map[uint32][]traces.Extent // by process
	private map[uint32][]traces.Private
	cow     map[uint32][]cowRow
	looks   map[uint32]*looks
	starts  map[passKey][]traces.Worker
	firsts  map[passKey]int64 // when the first batch of a pass was delivered
	nexts   map[uint32][]int64
}

type passKey struct{ proc, loader, pass uint32 }

// cowRow is what is kept of a row of cow.
type cowRow struct {
	seq     uint64
	ts      int64
	mapping string
	written int64 // pages, so far
	blocks  []int64
	counts  []int64
	final   bool
}

// looks is the first and the last look at a process with smaps_rollup.
type looks struct {
	first, last traces.Memory
	n           int
}

// nextSpacing thins out the times of deliveries: what is asked is whether there
// was one between two looks at a process, which are about a second apart.
const nextSpacing = 100_000_000 // ns

// Add takes the rows of one batch.
func (m *Memory) Add(b traces.Batch) {
	p := m.of(b.Part)
	switch rows := b.Rows.(type) {
	case []traces.Host:
		for i := range rows {
			p.total, p.totalAt, p.page = rows[i].MemTotal, rows[i].Seq, rows[i].PageSize
		}
	case []traces.Limit:
		p.limits = append(p.limits, rows...)
	case []traces.Worker:
		for _, r := range rows {
			if r.Phase == "begin" {
				k := passKey{r.Proc, r.Loader, r.Pass}
				p.starts[k] = append(p.starts[k], r)
			}
		}
	case []traces.BatchNext:
		for i := range rows {
			p.next(&rows[i])
		}
	case []traces.Memory:
		for i := range rows {
			p.look(&rows[i])
		}
	case []traces.Extent:
		for _, r := range rows {
			p.extents[r.Proc] = append(p.extents[r.Proc], r)
		}
	case []traces.Private:
		for _, r := range rows {
			p.private[r.Proc] = append(p.private[r.Proc], r)
		}
	case []traces.Cow:
		for i := range rows {
			r := &rows[i]
			p.cow[r.Proc] = append(p.cow[r.Proc], cowRow{r.Seq, r.TsNS, r.Mapping, int64(r.User + r.Kernel), slices.Clone(r.Blocks), slices.Clone(r.Pages), r.Final})
		}
	}
}

// Build is the rows as they were collected.
func (m *Memory) Build(*collect.Evidence) *Memory { return m }

// Merge takes over what another accumulator has collected from other parts.
func (m *Memory) Merge(other collect.Collector[*Memory]) { maps.Copy(m.parts, other.(*Memory).parts) }

func (m *Memory) of(tp *traces.Part) *part {
	p := m.parts[tp]
	if p == nil {
		p = &part{extents: map[uint32][]traces.Extent{}, private: map[uint32][]traces.Private{}, cow: map[uint32][]cowRow{}, looks: map[uint32]*looks{},
			starts: map[passKey][]traces.Worker{}, firsts: map[passKey]int64{}, nexts: map[uint32][]int64{}}
		m.parts[tp] = p
	}
	return p
}

func (p *part) next(r *traces.BatchNext) {
	if r.Status != "ok" {
		return
	}
	k := passKey{r.Proc, r.Loader, r.Pass}
	if _, ok := p.firsts[k]; !ok {
		p.firsts[k] = r.TsNS
	}
	if all := p.nexts[r.Proc]; len(all) == 0 || r.TsNS-all[len(all)-1] >= nextSpacing {
		p.nexts[r.Proc] = append(all, r.TsNS)
	}
}

func (p *part) look(r *traces.Memory) {
	if r.Proc == 0 || r.Source != "smaps_rollup" {
		return
	}
	l := p.looks[r.Proc]
	if l == nil {
		l = &looks{first: *r}
		p.looks[r.Proc] = l
	}
	l.last = *r
	l.n++
}

// delivered reports whether a process was handed a batch between two times.
func (p *part) delivered(proc uint32, from, to int64) bool {
	all := p.nexts[proc]
	i, _ := slices.BinarySearch(all, from)
	return i < len(all) && all[i] <= to
}

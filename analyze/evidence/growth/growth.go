// Package growth is what grew as samples were served: containers that workers and
// the main process hold, by the looks that the hook took at them, and the memory
// of the processes at the same moments.
package growth

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is containers that grew, and the memory beside them.
var Source = &collect.Source[*Growth]{
	Name:   "growth",
	Tables: []string{"batch_put", "container", "footprint"},
	Proof:  []string{"container", "footprint"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Growth] { return newGrowth() },
}

// Growth is the evidence of Source.
type Growth struct {
	rows   map[processKey]*rows
	visits map[shareKey]*visits
}

type processKey struct {
	part *traces.Part
	proc uint32
}

// rows of one process.
type rows struct {
	containers []traces.Container
	footprints []traces.Footprint
}

func newGrowth() *Growth {
	return &Growth{map[processKey]*rows{}, map[shareKey]*visits{}}
}

// Add takes the rows of one batch.
func (g *Growth) Add(b traces.Batch) {
	switch all := b.Rows.(type) {
	case []traces.BatchPut:
		for i := range all {
			g.visit(b.Part, &all[i])
		}
	case []traces.Container:
		for i := range all {
			r := g.of(b.Part, all[i].Proc)
			r.containers = append(r.containers, all[i])
		}
	case []traces.Footprint:
		for i := range all {
			r := g.of(b.Part, all[i].Proc)
			r.footprints = append(r.footprints, all[i])
		}
	}
}

func (g *Growth) of(part *traces.Part, proc uint32) *rows {
	k := processKey{part, proc}
	if g.rows[k] == nil {
		g.rows[k] = &rows{}
	}
	return g.rows[k]
}

func (g *Growth) have(p *timeline.Process) *rows {
	if r := g.rows[processKey{p.Part, p.Proc}]; r != nil {
		return r
	}
	return &rows{}
}

// Merge takes over what was collected of other parts.
func (g *Growth) Merge(other collect.Collector[*Growth]) {
	o := other.(*Growth)
	maps.Copy(g.rows, o.rows)
	maps.Copy(g.visits, o.visits)
}

// Build is the rows as they were collected.
func (g *Growth) Build(*collect.Evidence) *Growth { return g }

// Footprint is how the memory of one process changed between the first and the
// last look at its containers, in bytes.
type Footprint struct {
	Looks           int
	Anon, File, Shm int64 // growth; anonymous memory that is swapped out is still its own
	Series          Series
	Cut             string // why some containers were not looked at
	Containers      int64  // that were looked at last
	Known           bool   // the kernel tells which memory is anonymous
	Refs            []finding.Ref
}

// Footprint of a process; Looks 0: there was none.
func (g *Growth) Footprint(p *timeline.Process) Footprint {
	all := g.have(p).footprints
	f := Footprint{Looks: len(all), Series: Series{Process: p}}
	if len(all) == 0 {
		return f
	}
	first, last := all[0], all[len(all)-1]
	f.Anon, f.File, f.Shm = anon(first, last), last.File-first.File, last.Shm-first.Shm
	f.Known, f.Containers = first.Anon >= 0 && last.Anon >= 0, last.Containers
	for i := range all {
		r := &all[i]
		if r.Cut != "" {
			f.Cut = r.Cut
		}
		f.Series.Points = append(f.Series.Points, Point{TS: r.TsNS, Loader: r.Loader, Pass: r.Pass, Served: r.Served,
			Items: r.Anon + max(r.Swap, 0), Bytes: anon(first, *r), Seq: r.Seq})
	}
	f.Refs = []finding.Ref{ref(p, "footprint", first.Seq), ref(p, "footprint", last.Seq)}
	return f
}

func anon(first, last traces.Footprint) int64 {
	return last.Anon + max(last.Swap, 0) - first.Anon - max(first.Swap, 0)
}

func ref(p *timeline.Process, table string, seq uint64) finding.Ref {
	return finding.Ref{Part: p.Part.Name, Table: table, Seq: seq}
}

package fdexhausted

import (
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// counted is how many descriptors processes had open, and how many batches they
// had been given by then. A gap in it is none of the rule: that a process has
// failed is told by others, and what was never looked at is said.
var counted = &collect.Source[*counts]{
	Name:   "descriptors",
	Tables: []string{"batch_next", "descriptor"},
	New: func() collect.Collector[*counts] {
		return &counts{map[process][]traces.Descriptor{}, map[process]*deliveries{}, map[process]traces.Descriptor{}}
	},
}

// counts is the evidence of counted.
type counts struct {
	rows      map[process][]traces.Descriptor
	delivered map[process]*deliveries
	refused   map[process]traces.Descriptor // by the kernel: the last row of each
}

type process struct {
	part *traces.Part
	proc uint32
}

// delivery is how many batches a process had been given at a time.
type delivery struct {
	ts int64
	n  int
}

// deliveries are those of one process, thinned out: the latest is always there.
type deliveries struct {
	all     []delivery
	spacing int64 // ns from one to the next but one, at least
}

// A process' deliveries are kept 20 ms apart, as descriptors are counted every 100 ms
// at most; twice as far whenever there are too many.
const (
	spacing        = 20_000_000 // ns
	mostDeliveries = 1 << 14
)

func (d *deliveries) add(ts int64) {
	if n := len(d.all); n < 2 || ts-d.all[n-2].ts >= d.spacing {
		if n == mostDeliveries {
			d.thin()
			n = len(d.all)
		}
		d.all = append(d.all, delivery{ts, 0})
		if n > 0 {
			d.all[n].n = d.all[n-1].n
		}
	}
	last := &d.all[len(d.all)-1]
	last.ts = ts
	last.n++
}

// thin keeps every second one, and the latest.
func (d *deliveries) thin() {
	kept := d.all[:0]
	for i, x := range d.all {
		if i%2 == 1 { // of an even number the latest is among them
			kept = append(kept, x)
		}
	}
	d.all, d.spacing = kept, 2*d.spacing
}

// Add takes the rows of one batch.
func (c *counts) Add(b traces.Batch) {
	switch all := b.Rows.(type) {
	case []traces.Descriptor:
		for i := range all {
			p := process{b.Part, all[i].Proc}
			if all[i].Open > 0 {
				c.rows[p] = append(c.rows[p], all[i])
			} else if all[i].Refused > 0 {
				c.refused[p] = all[i]
			}
		}
	case []traces.BatchNext:
		for i := range all {
			if all[i].Status != "ok" {
				continue
			}
			p := process{b.Part, all[i].Proc}
			if c.delivered[p] == nil {
				c.delivered[p] = &deliveries{spacing: spacing}
			}
			c.delivered[p].add(all[i].TsNS)
		}
	}
}

// Merge takes over the rows of other parts.
func (c *counts) Merge(other collect.Collector[*counts]) {
	maps.Copy(c.rows, other.(*counts).rows)
	maps.Copy(c.delivered, other.(*counts).delivered)
	maps.Copy(c.refused, other.(*counts).refused)
}

// Build is the rows as they were collected.
func (c *counts) Build(*collect.Evidence) *counts { return c }

// of is the rows of a process, in their order.
func (c *counts) of(p *timeline.Process) []traces.Descriptor {
	return c.rows[process{p.Part, p.Proc}]
}

func (c *counts) deliveries(p *timeline.Process) []delivery {
	if d := c.delivered[process{p.Part, p.Proc}]; d != nil {
		return d.all
	}
	return nil
}

// batches is how many a process had been given by a time.
func (c *counts) batches(p *timeline.Process, ts int64) int {
	all := c.deliveries(p)
	i, _ := slices.BinarySearchFunc(all, ts, func(d delivery, ts int64) int {
		if d.ts <= ts {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0
	}
	return all[i-1].n
}

// point is a count of descriptors, after so many batches.
type point struct {
	batches int
	open    int64
	ref     finding.Ref
}

// points of a process while the loops of main ran: what is closed as it ends is not
// among them. The one of a failure is the last.
func (c *counts) points(p, main *timeline.Process, f *failure) (all []point) {
	deliveries := c.deliveries(main)
	if len(deliveries) == 0 {
		return nil
	}
	end := deliveries[len(deliveries)-1].ts
	if f != nil {
		end = min(end, f.TsNS)
	}
	rows := c.of(p)
	for i := range rows {
		r := &rows[i]
		if r.TsNS >= deliveries[0].ts && r.TsNS <= end {
			all = append(all, point{c.batches(main, r.TsNS), r.Open, finding.Ref{Part: p.Part.Name, Table: "descriptor", Seq: r.Seq}})
		}
	}
	if f != nil && f.Open > 0 {
		all = append(all, point{c.batches(main, f.TsNS), f.Open, finding.Ref{Part: p.Part.Name, Table: "exception", Seq: f.Seq}})
	}
	return all
}

// growth is how the number of descriptors rose with the batches.
type growth struct {
	first, last point
	steady      bool // as much in the first half of the batches as in the second, about
	released    bool // it fell again in between: what is kept is let go of
	counts      int
}

func (g growth) gained() int64     { return g.last.open - g.first.open }
func (g growth) batches() int      { return g.last.batches - g.first.batches }
func (g growth) perBatch() float64 { return float64(g.gained()) / float64(max(g.batches(), 1)) }

// dip is a fall that is none: what is under way is not always the same.
const dip = 0.1

func growthOf(all []point) (g growth) {
	if len(all) == 0 {
		return g
	}
	g = growth{first: all[0], last: all[len(all)-1], counts: len(all)}
	highest := all[0].open
	for _, p := range all {
		highest = max(highest, p.open)
		g.released = g.released || float64(p.open) < (1-dip)*float64(highest)
	}
	half := g.first.batches + g.batches()/2
	middle := g.first
	for _, p := range all {
		if p.batches <= half {
			middle = p
		}
	}
	next := g.last
	for _, p := range slices.Backward(all) {
		if p.batches > half {
			next = p
		}
	}
	at := float64(middle.open)
	if d := next.batches - middle.batches; d > 0 {
		at += float64(next.open-middle.open) * float64(half-middle.batches) / float64(d)
	}
	share := (at - float64(g.first.open)) / float64(max(g.gained(), 1))
	g.steady = g.gained() > 0 && share > 0.3 && share < 0.7
	return g
}

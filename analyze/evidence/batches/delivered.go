package batches

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Delivered is what reached the training loop in each pass.
var Delivered = &collect.Source[ByPass[Deliveries]]{
	Name:   "delivered batches",
	Tables: []string{"batch_next"},
	Proof:  []string{"batch_next"},
	Uses:   []collect.Any{timeline.Source},
	New: func() collect.Collector[ByPass[Deliveries]] {
		return &delivered{byPart[key, Deliveries]{}, map[process][]*Deliveries{}}
	},
}

// Deliveries is what reached the training loop in one pass.
type Deliveries struct {
	Count   int
	Stepped int    // batches after which an optimizer stepped before the next one was asked for
	Seq     uint64 // of the last row in batch_next

	moments moments
	loader  uint32
	calls   int // of next()
	reached set
	stepped set
	last    struct { // the delivery whose use is not known yet
		open  bool
		batch uint32
		steps uint64
	}
}

// Use is what the training loop did with a batch.
type Use int

const (
	Unseen  Use = iota // no batch was asked for after it
	Passed             // no optimizer stepped before the next batch was asked for
	Stepped            // one did
)

// Use of a delivered batch.
func (d *Deliveries) Use(batch uint32) Use {
	switch {
	case d.stepped.has(batch):
		return Stepped
	case d.last.open && d.last.batch == batch:
		return Unseen
	}
	return Passed
}

// Reached reports whether a batch was delivered to the training loop.
func (d *Deliveries) Reached(batch uint32) bool { return d.reached.has(batch) }

// delivered is the collector of Delivered.
type delivered struct {
	passes byPart[key, Deliveries]
	open   map[process][]*Deliveries // passes with a delivery whose use is not known
}

type process struct {
	part *traces.Part
	proc uint32
}

// mostOpen passes of a process may wait for a step at the same time; the use of
// the last batch of those before stays unseen.
const mostOpen = 64

func (c *delivered) Add(b traces.Batch) {
	rows, _ := b.Rows.([]traces.BatchNext)
	passes := c.passes.part(b.Part)
	for i := range rows {
		r := &rows[i]
		d := at(passes, key{r.Proc, r.Loader, r.Pass})
		if d.calls == 0 {
			d.loader = r.Loader
			c.begin(process{b.Part, r.Proc}, d, r)
		}
		d.next(r)
	}
}

// begin a pass: its first row tells what became of the last batches of those that
// the loop has left before.
func (c *delivered) begin(p process, d *Deliveries, r *traces.BatchNext) {
	open := c.open[p][:0]
	for _, left := range c.open[p] {
		switch {
		case !left.last.open:
		case r.Steps > left.last.steps || left.loader == r.Loader:
			left.use(r.Steps)
		default: // two loaders side by side: the step is still to come
			open = append(open, left)
		}
	}
	if len(open) == mostOpen {
		open = append(open[:0], open[1:]...)
	}
	c.open[p] = append(open, d)
}

func (c *delivered) Merge(other collect.Collector[ByPass[Deliveries]]) {
	o := other.(*delivered)
	c.passes.merge(o.passes)
	maps.Copy(c.open, o.open)
}

func (c *delivered) Build(e *collect.Evidence) ByPass[Deliveries] {
	return byPass(collect.Of(e, timeline.Source), c.passes)
}

func (d *Deliveries) next(r *traces.BatchNext) {
	d.use(r.Steps)
	d.calls++
	d.Seq = r.Seq
	d.last.open = r.Status == "ok"
	if d.last.open {
		d.last.batch, d.last.steps = r.Batch, r.Steps
		d.Count++
		d.reached.add(r.Batch)
		d.moments.add(r.Batch, r.Steps)
	}
}

// use settles what became of the last delivery: steps is the number of optimizer
// steps after it.
func (d *Deliveries) use(steps uint64) {
	if d.last.open && steps > d.last.steps {
		d.Stepped++
		d.stepped.add(d.last.batch)
	}
	d.last.open = false
}

// set of batch numbers, which are dense in a trace that was not made up. One that
// is far from all others takes less than a hundred bytes.
type set map[uint32]*[chunk / 64]uint64

const chunk = 512

func (s *set) add(n uint32) {
	c := (*s)[n/chunk]
	if c == nil {
		if *s == nil {
			*s = set{}
		}
		c = new([chunk / 64]uint64)
		(*s)[n/chunk] = c
	}
	c[n%chunk/64] |= 1 << (n % 64)
}

func (s set) has(n uint32) bool {
	c := s[n/chunk]
	return c != nil && c[n%chunk/64]&(1<<(n%64)) != 0
}

// Package looptime is where the time of training loops goes: waiting in next()
// against the step, what the workers did meanwhile, how long epochs take to start,
// and what other numbers of workers would give, by replaying the recorded times
// through torch's queues. All times are as recorded on one host's monotonic clock.
package looptime

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is where the time of the loops went.
var Source = &collect.Source[*Loops]{
	Name:   "loop time",
	Tables: []string{"host", "batch_fetch", "batch_next", "batch_put", "worker", "memory", "cpu", "opened"},
	Proof:  []string{"batch_next", "batch_fetch"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Loops] { return &collected{map[*traces.Part]*partRows{}} },
}

// Loops is the evidence of Source.
type Loops struct {
	of map[int]*Loop // by Loader.ID
}

// Of is the loop over a loader on all its ranks; nil if nothing was delivered.
func (l *Loops) Of(ranks timeline.Ranks) *Loop { return l.of[ranks.ID()] }

// collected is the rows of all parts, as far as they are kept.
type collected struct{ parts map[*traces.Part]*partRows }

// partRows is what is kept of the rows of one part: sums of all, and single
// batches as far as series allows.
type partRows struct {
	mains   map[passKey]*mainSide
	workers map[fetchKey]*workerSide
	loops   map[loaderKey]*loopSide
	ended   map[endKey]int64 // CPU time of workers, as their last pass ended
	looks   map[uint32]*looks
	cpu     []traces.Cpu // the first and the last row
	host    traces.Host
	kept    int // batches of which more than sums is kept
	indices map[batchKey][]int64

	keptIndices  int // in all
	openings     map[uint32][]opening
	keptOpenings int
}

type passKey struct{ proc, loader, pass uint32 }

type loaderKey struct{ proc, loader uint32 }

type batchKey struct {
	passKey
	batch uint32
}

type fetchKey struct {
	passKey
	worker int32
}

type endKey struct {
	proc, pass uint32
}

func newPart() *partRows {
	return &partRows{mains: map[passKey]*mainSide{}, workers: map[fetchKey]*workerSide{}, loops: map[loaderKey]*loopSide{},
		ended: map[endKey]int64{}, looks: map[uint32]*looks{}, indices: map[batchKey][]int64{}, openings: map[uint32][]opening{}}
}

// Add takes the rows of one batch.
func (c *collected) Add(b traces.Batch) {
	p := c.parts[b.Part]
	if p == nil {
		p = newPart()
		c.parts[b.Part] = p
	}
	switch rows := b.Rows.(type) {
	case []traces.Host:
		for i := range rows {
			p.host = rows[i]
		}
	case []traces.BatchFetch:
		for i := range rows {
			p.fetch(&rows[i])
		}
	case []traces.BatchNext:
		for i := range rows {
			p.next(&rows[i])
		}
	case []traces.BatchPut:
		for i := range rows {
			p.put(&rows[i])
		}
	case []traces.Worker:
		for i := range rows {
			if r := &rows[i]; r.Phase == "end" && r.CPUNS > 0 {
				p.ended[endKey{r.Proc, r.Pass}] = r.CPUNS
			}
		}
	case []traces.Memory:
		for i := range rows {
			p.look(&rows[i])
		}
	case []traces.Opened:
		for i := range rows {
			p.open(&rows[i])
		}
	case []traces.Cpu:
		for i := range rows {
			p.processors(&rows[i])
		}
	}
}

func (p *partRows) processors(r *traces.Cpu) {
	if len(p.cpu) == 2 {
		p.cpu[1] = *r
		return
	}
	p.cpu = append(p.cpu, *r)
}

// Merge takes over the rows of other parts.
func (c *collected) Merge(other collect.Collector[*Loops]) {
	maps.Copy(c.parts, other.(*collected).parts)
}

func ref(part *traces.Part, table string, seq uint64) finding.Ref {
	return finding.Ref{Part: part.Name, Table: table, Seq: seq}
}

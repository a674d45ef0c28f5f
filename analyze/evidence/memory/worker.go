package memory

import (
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Tier is who has counted what a worker copied.
type Tier int

const (
	Unseen Tier = iota // nobody
	Hook               // the worker itself, by /proc/self/pagemap
	Kernel             // the kernel: write faults on pages that were shared
)

// WorkerMemory is one worker process and what it copied of what it inherited.
type WorkerMemory struct {
	Number  int
	Process *timeline.Process
	Copies
	Present int64 // bytes of its dataset's extents that were in memory when it began; 0 unknown
	Samples int64 // that it has fetched, if each fetch was a full batch

	Looked        bool  // there were two looks at it
	NewAnon       int64 // growth of anonymous memory between the first and the last look; 0 without two
	NewFile       int64 // the same of file and shared mappings
	PrivateGrowth int64 // by which private memory grew that is not new
}

// Copies is what a tier has counted of one worker, in bytes.
type Copies struct {
	Tier     Tier
	Curve    []Point
	Copied   int64            // of the objects of its dataset
	ByExtent map[uint32]int64 // the same by Extent.Extent; what lies in the blocks of two counts in both
	Open     bool             // its last count is not in the trace
	Refs     []finding.Ref

	// By the kernel tier only.
	Others  int64 // of the objects of other datasets
	Outside int64 // of heap and anonymous memory where no such objects are
	Steady  int64 // of it, what was copied step by step as batches were delivered
	Rest    int64 // of stacks and private file mappings, and what could not be classified
	Forked  bool  // it forked itself: what it wrote to since then is not counted
}

// Point is what a worker has copied so far.
type Point struct {
	TS              int64 // ns
	Copied, Outside int64
}

// measure fills in what is known of a worker. The kernel's counts are better
// than the hook's.
func (m *Memory) measure(set *WorkerSet, w *WorkerMemory) {
	if l, ok := m.looks.Of(w.Process); ok && l.Times > 1 {
		w.Looked = true
		w.NewAnon = l.Last.Anonymous - l.First.Anonymous
		w.PrivateGrowth = (l.Last.PrivateDirty - l.First.PrivateDirty) - w.NewAnon
		w.NewFile = (l.Last.Rss - l.Last.Anonymous) - (l.First.Rss - l.First.Anonymous)
	}
	rows := m.have(w.Process)
	w.Copies, w.Present = rows.byHook(set)
	if len(rows.cow) > 0 {
		main := m.have(set.Loader.Process)
		w.Copies = rows.byKernel(set, main.extents)
		w.Steady = w.steady(main)
	}
}

// byHook reads what the worker saw in its own pagemap. Pages that are new since
// it began are subtracted: they are private, and no copies. present is what was
// in memory when it began.
func (r *rows) byHook(set *WorkerSet) (c Copies, present int64) {
	first := map[uint32]*traces.Private{}
	c.ByExtent = map[uint32]int64{}
	var begin, last uint64
	for i := range r.private {
		row := &r.private[i]
		if row.Parent != set.Loader.Process.Pid {
			continue
		}
		if first[row.Extent] == nil {
			first[row.Extent] = row
		}
		f := first[row.Extent]
		copied := max(0, row.Private-f.Private-max(0, row.Present-f.Present))
		if row.Extent != 0 {
			c.ByExtent[row.Extent] = max(c.ByExtent[row.Extent], copied)
			continue
		}
		if row == f {
			c.Tier, present, begin = Hook, row.Present, row.Seq
		}
		ts := row.TsNS
		if row.When == "end" && int(row.Pass) < len(set.Passes) { // persistent workers look when they are asked for the next pass
			ts = min(ts, set.Passes[row.Pass].End)
		}
		c.Curve = append(c.Curve, Point{TS: ts, Copied: copied})
		c.Copied = max(c.Copied, copied)
		c.Open = row.When != "end"
		last = row.Seq
	}
	if c.Tier == Hook {
		part := set.Loader.Process.Part
		c.Refs = []finding.Ref{ref(part, "private", begin), ref(part, "private", last)}
	}
	return c, present
}

// At is what a worker had copied of its dataset by a time.
func (w *WorkerMemory) At(ts int64) int64 {
	var n int64
	for _, p := range w.Curve {
		if p.TS <= ts {
			n = p.Copied
		}
	}
	return n
}

// Grown is the points of the curve at which the worker had copied more than
// before.
func (w *WorkerMemory) Grown() []Point {
	var out []Point
	for _, p := range w.Curve {
		if len(out) == 0 && p.Copied > 0 || len(out) > 0 && p.Copied > out[len(out)-1].Copied {
			out = append(out, p)
		}
	}
	return out
}

package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Family is processes that one process has forked to run the same, and that are
// no workers of a loader.
type Family struct {
	Target string // what they run
	WorkerSet
	Ended int // of them: looked at themselves as they ended
	Held  int // of them: their parent still held what they had inherited when they had ended
	own   map[*WorkerMemory][]traces.Extent
}

// Parent process of the family.
func (f *Family) Parent() *timeline.Process { return f.Loader.Process }

// Round is the family as a round, which limits are asked with.
func (f *Family) Round() Round { return Round{&f.WorkerSet} }

// Families of a run: processes that have looked at what they inherited of what
// they run.
func (m *Memory) Families(t *timeline.Timeline) []*Family {
	type key struct {
		parent *timeline.Process
		target string
	}
	found := map[key]*Family{}
	var all []*Family
	for _, p := range t.Processes {
		if p.Parent == nil {
			continue
		}
		main := m.have(p.Parent)
		its := main.left(m.have(p), p.Parent.Pid)
		if len(its) == 0 {
			continue
		}
		k := key{p.Parent, its[0].Target}
		f := found[k]
		if f == nil {
			f = &Family{Target: k.target, own: map[*WorkerMemory][]traces.Extent{}, WorkerSet: WorkerSet{Loader: &timeline.Loader{Process: p.Parent}, Persistent: true,
				page: m.PageSize(p.Part)}}
			found[k], all = f, append(all, f)
		}
		f.join(m, p, its)
	}
	return all
}

// left is the containers that a process has inherited which the rows are of.
func (r *rows) left(child *rows, pid int32) (its []traces.Extent) {
	for i := range r.extents {
		e := &r.extents[i]
		if e.Loader == 0 && slices.ContainsFunc(child.private, func(p traces.Private) bool {
			return p.Worker == noWorker && p.Extent == e.Extent && p.Parent == pid
		}) {
			its = append(its, *e)
		}
	}
	return its
}

// noWorker in Private.Worker: of a process that is none.
const noWorker = -1

// join adds a process that has inherited some containers. Of these only those
// count that its parent still held when it had ended: the others may be nobody
// else's any more, whoever copied what.
func (f *Family) join(m *Memory, p *timeline.Process, its []traces.Extent) {
	last := m.have(p).lastLook(f.Parent().Pid)
	if last.When == "end" {
		f.Ended++
	}
	gone := map[uint32]int64{} // of what is held: bytes that the parent has no longer, of other things on the same blocks
	for _, r := range m.have(f.Parent()).private {
		if _, seen := gone[r.Extent]; !seen && r.When == "held" && r.TsNS >= last.TsNS {
			gone[r.Extent] = max(0, m.have(p).present(r.Extent, f.Parent().Pid)-r.Present)
		}
	}
	held := slices.DeleteFunc(slices.Clone(its), func(e traces.Extent) bool {
		_, is := gone[e.Extent]
		return !is
	})
	if len(held) == len(its) {
		f.Held++
	}
	w := &WorkerMemory{Number: len(f.Workers), Process: p}
	f.Extents, f.own[w] = f.known(held), held
	one := f.WorkerSet // what this one has inherited, and no other
	one.Extents = held
	m.measure(&one, w)
	maps.DeleteFunc(w.ByExtent, func(n uint32, _ int64) bool {
		return !slices.ContainsFunc(held, func(e traces.Extent) bool { return e.Extent == n })
	})
	var sum int64
	for e, n := range w.ByExtent {
		if w.Tier == Hook {
			w.ByExtent[e] = max(0, n-gone[e])
		}
		sum += w.ByExtent[e]
	}
	w.Copied = min(w.Copied, sum)
	for i := range w.Curve {
		w.Curve[i].Copied = min(w.Curve[i].Copied, w.Copied)
	}
	f.Workers = append(f.Workers, w)
}

// lastLook is the last row of what a process had inherited of its parent.
func (r *rows) lastLook(parent int32) (last traces.Private) {
	for _, row := range r.private {
		if row.Parent == parent {
			last = row
		}
	}
	return last
}

// present is how much of an extent of its parent a process had in memory as it
// began.
func (r *rows) present(extent uint32, parent int32) int64 {
	for _, row := range r.private {
		if row.Parent == parent && row.Extent == extent {
			return row.Present
		}
	}
	return 0
}

// Reach is how much one of the processes can copy at most because it uses the
// objects.
func (f *Family) Reach(w *WorkerMemory) int64 { return reachable(f.own[w], w.Present, f.page) }

// known is the containers of the family with some more.
func (f *Family) known(more []traces.Extent) []traces.Extent {
	for _, e := range more {
		if !slices.ContainsFunc(f.Extents, func(o traces.Extent) bool { return o.Extent == e.Extent }) {
			f.Extents = append(f.Extents, e)
		}
	}
	slices.SortFunc(f.Extents, func(a, b traces.Extent) int { return cmp.Compare(a.Extent, b.Extent) })
	return f.Extents
}

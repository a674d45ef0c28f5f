package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Family is processes that one process has forked to run the same, and that are
// no workers of a loader. Its workers are those that had most to themselves at one
// time: of several that live one after the other each gives back what it copied.
type Family struct {
	Target string // what they run
	WorkerSet
	All   int // processes at any time
	Ended int // of all: looked at themselves as they ended
	Held  int // of all: their parent still held what they had inherited when they had ended
	own   map[*WorkerMemory][]traces.Extent
	lives map[*WorkerMemory][2]int64 // from the first to the last look
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
			set := WorkerSet{Loader: &timeline.Loader{Process: p.Parent}, Persistent: true, page: m.PageSize(p.Part)}
			f = &Family{Target: k.target, WorkerSet: set, own: map[*WorkerMemory][]traces.Extent{},
				lives: map[*WorkerMemory][2]int64{}}
			found[k], all = f, append(all, f)
		}
		f.join(m, p, its)
	}
	for _, f := range all {
		f.All, f.Workers = len(f.Workers), f.together()
	}
	return all
}

// together is the processes that had most to themselves at one time. What one
// copied counts from the half of its life on.
func (f *Family) together() (best []*WorkerMemory) {
	most := int64(-1)
	for _, w := range f.Workers {
		at, sum := f.lives[w][1], int64(0)
		var living []*WorkerMemory
		for _, other := range f.Workers {
			if life := f.lives[other]; at <= life[1] && 2*(at-life[0]) >= life[1]-life[0] {
				living = append(living, other)
				sum += other.Copied
			}
		}
		if sum > most {
			best, most = living, sum
		}
	}
	return best
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
	first, last := m.have(p).looks(f.Parent().Pid)
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
	f.Extents, f.own[w], f.lives[w] = f.known(held), held, [2]int64{first.TsNS, last.TsNS}
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

// looks is the first and the last row of what a process had inherited of its
// parent.
func (r *rows) looks(parent int32) (first, last traces.Private) {
	for _, row := range r.private {
		if row.Parent == parent {
			if first.Parent == 0 {
				first = row
			}
			last = row
		}
	}
	return first, last
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

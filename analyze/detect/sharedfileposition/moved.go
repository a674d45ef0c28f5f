package sharedfileposition

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// moved is what processes did to positions that they share.
var moved = &collect.Source[*positions]{
	Name:   "shared file positions",
	Tables: []string{"position", "overhead", "opened", "call_site"},
	Proof:  []string{"position"},
	New: func() collect.Collector[*positions] {
		return &positions{map[key]traces.Position{}, map[*traces.Part]bool{}, map[opener]traces.Opened{}, map[site]string{}}
	},
}

// positions is the evidence of moved: the last row of each process and open file.
type positions struct {
	rows    map[key]traces.Position
	watched map[*traces.Part]bool // the kernel counted in it
	opened  map[opener]traces.Opened
	sites   map[site]string // traces.CallSite.Frames
}

// opener is a process that has opened a file, and opened where.
type opener struct {
	process
	path string
}

type site struct {
	part   *traces.Part
	number uint32
}

type key struct {
	part   *traces.Part
	source string
	file   uint32
	proc   uint32
}

// Add takes the rows of one batch.
func (p *positions) Add(b traces.Batch) {
	switch all := b.Rows.(type) {
	case []traces.Position:
		for i := range all {
			p.rows[key{b.Part, all[i].Source, all[i].File, all[i].Proc}] = all[i]
		}
	case []traces.Overhead:
		for i := range all {
			if all[i].Probe == "positions" {
				p.watched[b.Part] = true
			}
		}
	case []traces.Opened:
		for i := range all {
			p.open(b.Part, &all[i])
		}
	case []traces.CallSite:
		for i := range all {
			p.sites[site{b.Part, all[i].Site}] = all[i].Frames
		}
	}
}

// open takes over what a process has opened, of which it is known what did that: the first row of a file says so, and
// a later one how often.
func (p *positions) open(part *traces.Part, row *traces.Opened) {
	at := opener{process{part, row.Proc}, row.Path}
	first, known := p.opened[at]
	switch {
	case known:
		first.Count = max(first.Count, row.Count)
		p.opened[at] = first
	case row.Site != 0:
		p.opened[at] = *row
	}
}

// openedAt is the line at which the process with a loader has opened a file, for a sentence: " at train.py:12 (Records.__init__),".
// "" if that is not known.
func (p *positions) openedAt(c *detect.Case, f *file) string {
	for _, l := range c.Loaders {
		row, ok := p.opened[opener{process{l.Process.Part, l.Process.Proc}, f.path}]
		if !ok || l.Process.Part != f.part {
			continue
		}
		line := timeline.Caller(l.Process.Cwd, timeline.Frames(p.sites[site{f.part, row.Site}]), 2)
		switch {
		case line == "":
		case row.Count > 1: // which of them is the one that is shared was not looked at
			return ", first at " + line + ","
		default:
			return " at " + line + ","
		}
	}
	return ""
}

// Merge takes over the rows of other parts.
func (p *positions) Merge(other collect.Collector[*positions]) {
	maps.Copy(p.rows, other.(*positions).rows)
	maps.Copy(p.watched, other.(*positions).watched)
	maps.Copy(p.opened, other.(*positions).opened)
	maps.Copy(p.sites, other.(*positions).sites)
}

// Build is the rows as they were collected.
func (p *positions) Build(*collect.Evidence) *positions { return p }

// file is an open file that a loader's workers move the position of, and all
// processes that do.
type file struct {
	part   *traces.Part
	path   string
	at     string // see openedAt
	kernel bool   // else who moves it was not seen
	movers []mover

	seeks, reads, turns, taken, again, loose, asked uint64
	looks, moved, back                              uint64
}

// mover is one process.
type mover struct {
	traces.Position
	worker *timeline.WorkerProcess // nil: it is none of this loader's
}

// filesOf is the open files that workers of a loader move, those that went astray
// most first.
func (p *positions) filesOf(c *detect.Case) []*file {
	type open struct {
		part   *traces.Part
		source string
		file   uint32
	}
	byFile := map[open]*file{}
	ours := map[open]bool{}
	workers := workersOf(c)
	for k, row := range p.rows {
		if k.file == 0 { // looked at: there is none
			continue
		}
		at := open{k.part, k.source, k.file}
		f := byFile[at]
		if f == nil {
			f = &file{part: k.part, kernel: k.source == "kernel"}
			byFile[at] = f
		}
		w := workers[process{k.part, k.proc}]
		ours[at] = ours[at] || w != nil
		f.add(mover{row, w})
	}
	maps.DeleteFunc(byFile, func(at open, _ *file) bool { return !ours[at] })
	all := slices.Collect(maps.Values(byFile))
	for _, f := range all {
		f.at = p.openedAt(c, f)
		slices.SortFunc(f.movers, func(a, b mover) int { return cmp.Compare(a.Proc, b.Proc) })
	}
	slices.SortFunc(all, func(a, b *file) int {
		return cmp.Or(cmp.Compare(b.taken, a.taken), cmp.Compare(b.loose, a.loose), cmp.Compare(b.back, a.back),
			cmp.Compare(a.path, b.path), cmp.Compare(a.movers[0].Seq, b.movers[0].Seq))
	})
	return all
}

type process struct {
	part *traces.Part
	proc uint32
}

// workersOf is the worker processes of a loader on all ranks.
func workersOf(c *detect.Case) map[process]*timeline.WorkerProcess {
	all := map[process]*timeline.WorkerProcess{}
	for _, l := range c.Loaders {
		for _, w := range l.WorkerProcesses {
			if w.Process != nil {
				all[process{w.Process.Part, w.Process.Proc}] = w
			}
		}
	}
	return all
}

func (f *file) add(m mover) {
	f.movers = append(f.movers, m)
	f.path = cmp.Or(f.path, m.Path)
	f.seeks += m.Seeks
	f.reads += m.Reads
	f.turns += m.Turns
	f.taken += m.Taken
	f.again += m.Again
	f.loose += m.Loose
	f.asked += m.Asked
	f.looks, f.moved, f.back = max(f.looks, m.Looks), max(f.moved, m.Moved), max(f.back, m.Back)
}

// inTurns reports whether processes moved the position between each other's moves:
// not one after the other, as the workers of one pass come after those of another.
func (f *file) inTurns() bool { return f.turns > uint64(len(f.movers)-1) }

// buffered reports whether processes that seek read on from where another one has left the position, too: who reads ahead
// into a buffer of its own seeks inside of that, and takes for the file's next bytes what comes then. Processes that share
// a file out among themselves by turns hardly ever seek.
func (f *file) buffered() bool {
	movers := uint64(len(f.movers))
	return f.kernel && f.taken == 0 && f.inTurns() && f.loose > movers && f.seeks > 2*movers && f.seeks >= f.loose/4
}

// queued reports whether processes share the file out among themselves, or see to reads that went astray.
func (f *file) queued() bool {
	return f.kernel && f.inTurns() && !f.buffered() && (f.loose >= uint64(len(f.movers)) || f.again > 0)
}

// everywhere reports whether reads went astray that had sought several places. One
// that is the same each time is where all rewind to, to share out what follows.
func (f *file) everywhere() bool {
	var sought []int64
	for _, m := range f.movers {
		if m.Places > 1 {
			return true
		}
		if m.Taken > 0 {
			sought = append(sought, m.Sought)
		}
	}
	slices.Sort(sought)
	return len(slices.Compact(sought)) > 1
}

// workers are those of the loader among the movers.
func (f *file) workers() (all []mover) {
	for _, m := range f.movers {
		if m.worker != nil {
			all = append(all, m)
		}
	}
	return all
}

// refs are the rows that the counts are from, of the processes that went astray
// most first.
func (f *file) refs() (refs []finding.Ref) {
	const most = 8
	movers := slices.Clone(f.movers)
	slices.SortStableFunc(movers, func(a, b mover) int { return cmp.Compare(b.Taken, a.Taken) })
	for _, m := range movers[:min(len(movers), most)] {
		refs = append(refs, finding.Ref{Part: f.part.Name, Table: "position", Seq: m.Seq})
	}
	return refs
}

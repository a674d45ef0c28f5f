package cow

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

const (
	blockBits = 21 // of an address within its block, as in bpf/cow.bpf.c
	// Rows are written once a second, or so seldom that all processes together
	// write this many blocks a second: workers of a large dataset touch all of
	// its blocks all the time.
	tellEvery       = time.Second
	blocksPerSecond = 2000
)

// process is what one process has copied so far.
type process struct {
	blocks  map[uint64]*block
	changed int // blocks that were not yet written so
	next    time.Time
	own     []region // its mappings, where those of its parent are not known; nil: never read
	forker
}

// forker is what the parent of a process had mapped.
type forker struct {
	inherit []region // soon after the fork; nil: not known
	earlier []region // when it forked others before: it may have unmapped some since
	read    time.Time
}

// block is 2 MiB of a process.
type block struct {
	cowPages
	told uint32 // pages in the last row
	kind string // traces.Cow.Mapping; "" not yet known
}

func (b *block) pages() uint32 { return b.User + b.Kernel }

// of finds a process. What its parent has mapped is read when it is first seen:
// that is what it has inherited.
func (w *watcher) of(r probe.Node) *process {
	p := w.procs[r.ID]
	if p == nil {
		p = &process{blocks: map[uint64]*block{}, forker: w.forkerOf(r.Parent)}
		w.procs[r.ID] = p
	}
	return p
}

// forkerOf reads the mappings of a process that has just forked. Children that
// are forked together have them in common.
func (w *watcher) forkerOf(id uint32) forker {
	known := w.parents[id]
	if known.inherit != nil && time.Since(known.read) < lookEvery {
		return known
	}
	parent, ok := w.Tree.Of(id)
	if !ok || !parent.Ended.IsZero() {
		return forker{earlier: known.inherit}
	}
	all, err := procfs.Maps(parent.Pid)
	if err != nil {
		return forker{earlier: known.inherit}
	}
	w.parents[id] = forker{inherit: regions(all), earlier: known.inherit, read: time.Now()}
	return w.parents[id]
}

func (p *process) count(number uint64, n cowPages) {
	b := p.blocks[number]
	if b == nil {
		b = &block{}
		p.blocks[number] = b
	}
	if b.cowPages != n {
		if b.pages() == b.told {
			p.changed++
		}
		b.cowPages = n
	}
}

func (p *process) due(now time.Time) bool { return p.changed > 0 && !now.Before(p.next) }

// classify finds out what the blocks are mapped for. What is copied was inherited:
// the parent's mappings say what it is. Only where they could not be read, the
// process' own do, as long as it lives.
func (p *process) classify(pid int32, alive bool) {
	asked := false
	for number, b := range p.blocks {
		if b.kind != "" && b.kind != unknown {
			continue
		}
		start := number << blockBits
		end := start + 1<<blockBits
		inherited := cmp.Or(dominant(p.inherit, start, end), dominant(p.earlier, start, end))
		if inherited == "" && p.inherit != nil {
			inherited = fresh
		}
		b.kind = cmp.Or(inherited, dominant(p.own, start, end))
		if b.kind == "" && alive && !asked {
			asked = true
			if all, err := procfs.Maps(pid); err == nil {
				p.own = regions(all)
			}
		}
		b.kind = cmp.Or(b.kind, dominant(p.own, start, end), unknown)
	}
}

// Kinds of mapping that /proc/PID/maps does not know; see traces.Cow.
const (
	fresh   = "new"
	unknown = "unknown"
	parent  = "parent"
)

// tell writes a row for each kind of mapping that has changed.
func (w *watcher) tell(p *process, r probe.Node, now time.Time, final bool) {
	p.classify(r.Pid, !final)
	rows := map[string]*traces.Cow{}
	wrote := 0
	for _, number := range slices.Sorted(maps.Keys(p.blocks)) {
		b := p.blocks[number]
		row := rows[b.kind]
		if row == nil {
			row = &traces.Cow{Head: traces.Head{TsNS: probe.Now(), Proc: r.Proc}, Mapping: b.kind, Final: final}
			rows[b.kind] = row
		}
		row.User += uint64(b.User)
		row.Kernel += uint64(b.Kernel)
		if b.pages() != b.told {
			row.Blocks = append(row.Blocks, int64(number))
			row.Pages = append(row.Pages, int64(b.pages()))
			b.told = b.pages()
			wrote++
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(rows)) {
		if row := rows[kind]; final || len(row.Blocks) > 0 {
			w.Rows.Append(*row)
		}
	}
	p.changed = 0
	p.next = now.Add(max(tellEvery, time.Duration(wrote*len(w.procs))*time.Second/blocksPerSecond))
}

// finish writes the last rows of a process: with what the map had no room for,
// and what it did after it had forked children itself.
func (w *watcher) finish(r probe.Node) {
	if w.finished[r.ID] {
		return
	}
	w.finished[r.ID] = true // until the process probe forgets it
	var user, kernel uint64
	if p := w.procs[r.ID]; p != nil {
		w.tell(p, r, time.Now(), true)
		for _, b := range p.blocks {
			user += uint64(b.User)
			kernel += uint64(b.Kernel)
		}
		delete(w.procs, r.ID)
	}
	row := traces.Cow{Head: traces.Head{TsNS: probe.Now(), Proc: r.Proc}, Final: true}
	if r.Inherit && r.CowUser+r.CowKernel > user+kernel {
		row.Mapping, row.User, row.Kernel = unknown, r.CowUser-min(user, r.CowUser), r.CowKernel-min(kernel, r.CowKernel)
		w.Rows.Append(row)
	}
	if r.AfterFork > 0 {
		row.Mapping, row.User, row.Kernel = parent, r.AfterFork, 0
		w.Rows.Append(row)
	}
}

// tellAll writes what is known of processes that live on.
func (w *watcher) tellAll() {
	for id, p := range w.procs {
		if r, ok := w.Tree.Of(id); ok && r.Inherit && p.changed > 0 {
			w.tell(p, r, time.Now(), false)
		}
	}
}

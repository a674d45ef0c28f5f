// Package positions says which open files several processes of the run move the
// position of, and whether reads went astray by it. Looking and counting is done
// by bpf/positions.bpf.c.
package positions

import (
	"bytes"
	"encoding/binary"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// Probe is bpf/positions.bpf.c.
var Probe = probe.Probe{
	Name:  "positions",
	Doc:   "open files whose position several processes of the run move; from the kernel",
	Tier:  probe.Kernel,
	Needs: needs,
	After: []string{"process"},
	Late:  true,
	Start: kernelSide.Start,
}

var kernelSide = probe.KernelSide{
	Probe: "positions",
	Load:  loadPositions,
	Ring:  positionsMapPositions,
	Pause: time.Second,
	Table: "position",
	Drops: []probe.Drop{
		{Variable: positionsVarLostEvents, Table: "position", Reason: "the ring of the positions probe was full"},
		{Variable: positionsVarLostFiles, Table: "position", Reason: "open files that found no room in the positions probe"},
	},
	Open: open,
}

// watcher turns what processes do to positions into rows.
type watcher struct {
	*probe.Recording
	programs *probe.Programs
	files    map[uint32]*file // that two processes have moved, by their number
	told     map[positionsMover]positionsMoves
	unnamed  uint64 // movers whose fork was lost
}

// file is an open file that several processes move.
type file struct {
	path   string
	own    bool // the hook's, or the system's
	first  uint32
	second uint32
}

func open(r *probe.Recording, p *probe.Programs) probe.Handler {
	w := &watcher{Recording: r, programs: p, files: map[uint32]*file{}, told: map[positionsMover]positionsMoves{}}
	return probe.Handler{
		Take:   w.take,
		Second: func(time.Time) { w.tell(false) },
		Runs:   func() uint64 { return p.Counter(positionsVarRuns, 0) },
		End:    func() error { w.tell(true); return nil },
	}
}

// take asks the process that has moved another one's position for the file's
// path, while it has it open.
func (w *watcher) take(raw []byte) bool {
	var e positionsPositionEvent
	if n, err := binary.Decode(raw, binary.NativeEndian, &e); err != nil || n > len(raw) { // the ring rounds sizes up
		return false
	}
	path := pathOf(int32(e.Pid), e.Fd, &e)
	if n, ok := w.Tree.Of(e.First); path == "" && ok {
		path = pathOf(n.Pid, e.Fd, &e)
	}
	f := &file{path: path, first: e.First, second: e.Second}
	f.own = strings.HasPrefix(path, w.Spool+"/") || strings.HasPrefix(path, w.Hook+"/")
	if path == "" {
		name, _, _ := bytes.Cut(e.Name[:], []byte{0})
		f.path = strings.ReplaceAll(strings.ToValidUTF8(string(name), "?"), "/", "")
	}
	w.files[e.File] = f
	return true
}

// tell writes what movers have done, of whom there is news worth a row: they have
// ended, or their counts have doubled.
func (w *watcher) tell(last bool) {
	if len(w.files) == 0 {
		return
	}
	movers := w.programs.Maps[positionsMapMovers]
	for mover, moves := range all(movers) {
		f := w.files[mover.File]
		if f == nil || f.own {
			continue
		}
		node, ok := w.Tree.Of(mover.Id)
		if !ok {
			if last {
				w.unnamed++
			}
			continue
		}
		final := last || !node.Ended.IsZero()
		before, known := w.told[mover]
		if !final && known && moves.Turns < 2*before.Turns+1 {
			continue
		}
		w.Rows.Append(w.row(mover, moves, f, node, final))
		w.told[mover] = moves
		if final && !last {
			_ = movers.Delete(mover)
			delete(w.told, mover)
		}
	}
	if last {
		w.programs.Lost("position", "files of processes whose fork was lost", w.unnamed)
	}
}

func (w *watcher) row(mover positionsMover, m positionsMoves, f *file, node probe.Node, final bool) traces.Position {
	origin := ""
	switch {
	case m.ParentFd >= 0:
		origin = "inherited"
	case node.Inherit:
		origin = "shared"
	}
	return traces.Position{
		Head: traces.Head{TsNS: probe.Now(), Proc: w.Number(node)}, File: mover.File, Path: f.path, Fd: m.Fd, Origin: origin,
		Seeks: m.Seeks, Reads: m.Reads, Turns: m.Turns, Taken: m.Taken, Places: m.Places, Sought: m.Before, Again: m.Again, Loose: m.Loose,
		Asked:  m.Asked,
		Source: "kernel", Final: final,
	}
}

// all movers that the kernel side knows.
func all(m *ebpf.Map) map[positionsMover]positionsMoves {
	found := map[positionsMover]positionsMoves{}
	var mover positionsMover
	var moves positionsMoves
	for each := m.Iterate(); each.Next(&mover, &moves); {
		found[mover] = moves
	}
	return found
}

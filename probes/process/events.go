package process

import (
	"bytes"
	"encoding/binary"
	"strings"
	"syscall"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

const maxSender = 512 // bytes of a sender's command line

// take turns one event into rows.
func (w *watcher) take(raw []byte) bool {
	var e processEvent
	if !decode(raw, &e) {
		return false
	}
	switch processKind(e.Kind) {
	case processKindKIND_FORK:
		var f processForkEvent
		if !decode(raw, &f) {
			return false
		}
		w.forked(e, &f)
	case processKindKIND_EXEC:
		var x processExecEvent
		if !decode(raw, &x) {
			return false
		}
		w.executed(e, &x)
	case processKindKIND_EXIT:
		var x processExitEvent
		if !decode(raw, &x) {
			return false
		}
		w.exited(e, &x)
	case processKindKIND_SIGNAL:
		var s processSignalEvent
		if !decode(raw, &s) {
			return false
		}
		w.signalled(e, &s)
	case processKindKIND_OOM:
		var o processOomEvent
		if !decode(raw, &o) {
			return false
		}
		w.Rows.Append(traces.Oom{Head: w.head(e), Comm: text(o.Comm[:])})
	default:
		return false
	}
	return true
}

// decode fills an event's struct. The ring rounds sizes up.
func decode(raw []byte, event any) bool {
	n, err := binary.Decode(raw, binary.NativeEndian, event)
	return err == nil && n <= len(raw)
}

// text is a C string.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return strings.ToValidUTF8(string(b), "?")
}

// ticks is a start time as /proc/PID/stat shows it.
func ticks(ns uint64) uint64 { return ns / uint64(procfs.Tick) }

// head begins a row about an event's process.
func (w *watcher) head(e processEvent) traces.Head {
	h := traces.Head{TsNS: int64(e.TsNs)}
	if r, ok := w.Tree.Of(e.Id); ok {
		h.Proc = w.Number(r)
	} else { // the event of its fork was lost
		p, _ := w.Procs.Of(int32(e.Pid), ticks(e.StartNs))
		h.Proc = p.Number
	}
	return h
}

// node makes a process known.
func (w *watcher) node(e processEvent, parent uint32, inherit bool) probe.Node {
	r := probe.Node{ID: e.Id, Parent: parent, Pid: int32(e.Pid), Start: ticks(e.StartNs), Inherit: inherit}
	p, _ := w.Procs.Of(r.Pid, r.Start)
	r.Proc = p.Number
	w.Tree.Set(r)
	return r
}

func (w *watcher) forked(e processEvent, f *processForkEvent) {
	r := w.node(e, f.ParentId, f.Flags&syscall.CLONE_VM == 0)
	row := traces.Process{Head: traces.Head{TsNS: int64(e.TsNs), Proc: r.Proc}, Pid: r.Pid, Ppid: int32(f.Ppid), StartTicks: r.Start,
		Rank: -1, LocalRank: -1}
	w.Procs.IfUnhooked(r.Pid, r.Start, func() { w.Rows.Append(row) })
}

// executed writes what a process runs now. A Python is told from others, and
// one that ignores the hook's folder is named, as procfs does it: it may be
// gone before procfs looks.
func (w *watcher) executed(e processEvent, x *processExecEvent) {
	old, known := w.Tree.Of(e.Id)
	r := w.node(e, old.Parent, false)
	args := procfs.Strings(x.Args[:min(int(x.ArgsLength), len(x.Args))])
	row := traces.Process{Head: traces.Head{TsNS: int64(e.TsNs), Proc: r.Proc}, Pid: r.Pid, Ppid: int32(x.Ppid), StartTicks: r.Start,
		Exe: text(x.Exe[:]), Cmdline: procfs.Join(w.Secrets.Args(args), len(x.Args)), Kind: "other", Hook: "none", Rank: -1, LocalRank: -1}
	if r.Pid == w.Target {
		row.Kind = "target"
	}
	off := false
	if probe.IsPython(row.Exe) {
		if row.Kind != "target" {
			row.Kind = "python"
		}
		row.Hook = "idle"
		if why := probe.Obstacle(args, nil, w.Hook); why != "" { // its environment is not known
			row.Hook, row.Note, off = "off", why, true
		}
	}
	if w.Procs.IfUnhooked(r.Pid, r.Start, func() { w.Rows.Append(row) }) && off && known {
		w.Procs.MarkUnhooked()
	}
}

func (w *watcher) exited(e processEvent, x *processExitEvent) {
	h := w.head(e)
	status := syscall.WaitStatus(x.Status)
	row := traces.Exit{Head: h, ExitCode: int32(status.ExitStatus()), Source: "kernel"}
	if status.Signaled() {
		row.ExitCode, row.Signal = -1, int32(status.Signal())
	}
	r, ok := w.Tree.Of(e.Id)
	if !ok {
		r = w.node(e, 0, false)
	}
	r.Proc, r.Ended = h.Proc, time.Now()
	r.CowUser, r.CowKernel, r.AfterFork = x.User, x.Kernel, x.AfterFork
	w.Tree.Set(r)
	w.Tree.AddFaults(x.Faults)
	w.ended = append(w.ended, r)
	w.Procs.Exit(w.Rows, r.Pid, r.Start, row)
}

func (w *watcher) signalled(e processEvent, s *processSignalEvent) {
	row := traces.Signal{Head: w.head(e), Signal: s.Signal, SiCode: s.Code, SenderPid: int32(s.SenderPid), SenderComm: text(s.Comm[:]),
		SenderAncestor: s.Ancestor != 0, Address: s.Address}
	if s.SenderId != 0 {
		row.SenderProc = w.head(processEvent{Id: s.SenderId, Pid: s.SenderPid}).Proc
	}
	if row.SenderPid != 0 {
		// It may be gone, its number may even belong to another by now: it is read
		// within a tenth of a second.
		row.SenderCmdline = procfs.Join(w.Secrets.Args(procfs.Cmdline(row.SenderPid)), maxSender)
	}
	row.Mapping, row.MappingPath = mappingOf(&s.Mapping)
	if m := &s.Mapping; m.Found == foundFile && m.Magic != 0 {
		row.FileSize, row.FileOffset = int64(m.Size), int64(m.Offset)
		row.ShmCapacity, row.ShmUsed = int64(m.Capacity)<<pageShift, int64(m.Used)<<pageShift
	}
	w.Rows.Append(row)
}

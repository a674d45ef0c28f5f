package hook

import (
	"strings"

	"github.com/dptrace/dptrace/probes/frames"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

// take turns one record into rows.
func (d *reader) take(s *source, rec record) {
	h := traces.Head{TsNS: rec.tsNS, Proc: s.proc}
	switch rec.kind {
	case typeProcess, typeSlot, typeAttribute, typeErrors:
		f, err := parseFacts(rec.payload)
		switch {
		case err != nil:
			s.bad++
		case rec.kind == typeProcess:
			d.takeProcess(s, f, h)
		case rec.kind == typeSlot:
			d.takeSlot(s, f, h)
		case rec.kind == typeAttribute:
			d.takeAttribute(s, f, h)
		default:
			d.takeErrors(s, f, h)
		}
		return
	}
	row, ok := decode(rec, h)
	if !ok {
		s.bad++
		return
	}
	if row == nil { // of a newer hook
		return
	}
	d.Rows.Append(row)
	if w, ok := row.(*traces.Worker); ok && w.Phase == "exit" {
		d.takeExit(w)
	}
}

func (d *reader) takeProcess(s *source, f facts, h traces.Head) {
	row := traces.Process{Head: h, Rank: -1, LocalRank: -1}
	f.fill(&row)
	// Divided by zeros, as in /proc: a secret may have blanks in it.
	row.Cmdline = procfs.Join(d.Secrets.Args(strings.Split(row.Cmdline, "\x00")), maxText)
	row.Pid, row.StartTicks, row.Hook = s.pid, s.start, "on"
	if s.pid == d.Target {
		row.Kind = "target"
	}
	d.Procs.MarkHooked(s.pid, s.start, row.Torch != "")
	d.Rows.Append(row)
	if l, ok := frames.LayoutOf(row.Python); ok && f.number("thread_state", 0) != 0 {
		d.Pythons.Add(frames.Process{Pid: s.pid, Thread: uint64(f.number("thread_state", 0)), Layout: l})
	}
}

func (d *reader) takeSlot(s *source, f facts, h traces.Head) {
	row := traces.RngSlot{Head: h}
	f.fill(&row)
	row.File, row.Line = d.assigned(s, f)
	d.Rows.Append(row)
}

func (d *reader) takeAttribute(s *source, f facts, h traces.Head) {
	row := traces.Attribute{Head: h, Worker: -1}
	f.fill(&row)
	row.Ordered, row.Unordered = f.hex("ordered"), f.hex("unordered")
	row.File, row.Line = d.assigned(s, f)
	d.Rows.Append(row)
}

// assigned is the one line that assigns an attribute; "" if there is none, or
// several, or a process has asked for more than ever has a reason to.
func (d *reader) assigned(s *source, f facts) (file string, line int32) {
	a := assignment{source: f.text("source"), attr: f.text("attr"), first: int(f.number("first", 0)), last: int(f.number("last", 0))}
	if d.searched >= maxSearchedByAll {
		s.searched = maxSearched
	}
	before := s.searched
	n := d.sources.line(a, &s.searched)
	d.searched += s.searched - before
	if n > 0 {
		return a.source, int32(n)
	}
	return "", 0
}

// takeErrors counts what our code in the process could not do. The record's
// count is the sum so far.
func (d *reader) takeErrors(s *source, f facts, h traces.Head) {
	count := uint64(max(f.number("count", 1), 0))
	reason := f.text("last")
	if off, _ := f["disabled"].(bool); off {
		reason += " (the hook has stopped in this process)"
	}
	if count > s.hookErrs {
		d.Rows.Append(traces.Lost{Head: h, Source: "hook-error", Count: count - s.hookErrs, Reason: reason})
		s.hookErrs = count
	}
}

// takeExit tells how a worker ended, which only its parent knows: it is not the
// recorder's child.
func (d *reader) takeExit(w *traces.Worker) {
	p, ok := d.Procs.ByPid(w.Pid)
	if !ok {
		return
	}
	e := traces.Exit{Head: traces.Head{TsNS: w.TsNS}, ExitCode: w.ExitCode, Source: "exitcode"}
	if w.ExitCode < 0 {
		e.ExitCode, e.Signal = -1, -w.ExitCode
	}
	d.Procs.Exit(d.Rows, p.Pid, p.Start, e)
}

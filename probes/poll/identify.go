package poll

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

const (
	maxCmdline = 4096 // bytes, as in traces.Process
	// In its first seconds a Python imports torch, if it does at all: what ends
	// soon after must have been looked at in between.
	importing = 20 * time.Second
	// A child whose parent has the hook has it from its parent, and tells so as soon
	// as it records anything; its maps, a thousand lines with torch, are read only
	// if it does not.
	telling = 250 * time.Millisecond
)

// identify writes a row when a process is first seen, when it has called exec,
// and when it is clear that the hook could not load in it.
func (w *watcher) identify(p *process, st procfs.Stat, now time.Time) {
	exe := procfs.Link(p.pid, "exe")
	if p.pid == w.Target && exe == w.self && p.exe == "" {
		return
	}
	if exe != p.exe && exe != "" {
		p.exe = exe
		w.shm.lives(p.pid)
		p.python = probe.IsPython(exe)
		p.judged, p.judgements, p.torch, p.nextJudge = false, 0, 0, now
		if w.inherits(p, st) {
			p.nextJudge = now.Add(telling)
		}
		w.introduce(p, st)
	} else if p.nameless {
		row := w.row(p, st)
		row.Cmdline = procfs.Join(w.Secrets.Args(procfs.Cmdline(p.pid)), maxCmdline)
		if p.nameless = row.Cmdline == ""; !p.nameless {
			w.Rows.Append(row)
			w.commands(p, row.Head)
		}
	}
	if p.judged || now.Before(p.nextJudge) {
		return
	}
	// Soon at first, then ever more rarely: torch may be imported late.
	p.judgements++
	wait := min(time.Second/4<<min(p.judgements, 8), time.Minute)
	if now.Sub(p.seen) < importing {
		wait = min(wait, time.Second)
	}
	if p.torch > 0 {
		wait = min(wait, time.Second) // it is known at the third look, and may have loaded torch late
	}
	p.nextJudge = now.Add(wait)
	w.judge(p, st, now)
}

// inherits reports whether a process runs the program of its parent, which has
// the hook.
func (w *watcher) inherits(p *process, st procfs.Stat) bool {
	parent := w.procs[st.Ppid]
	if parent == nil || parent.exe != p.exe {
		return false
	}
	known, ok := w.Procs.ByPid(parent.pid)
	return ok && known.Start == parent.start && known.Hooked
}

// introduce writes what the process runs.
func (w *watcher) introduce(p *process, st procfs.Stat) {
	row := w.row(p, st)
	row.Exe, row.Cwd = p.exe, procfs.Link(p.pid, "cwd")
	row.Cmdline = procfs.Join(w.Secrets.Args(procfs.Cmdline(p.pid)), maxCmdline)
	p.nameless = row.Cmdline == "" // it is calling exec right now: look again
	unhooked := w.Procs.IfUnhooked(p.pid, p.start, func() {
		row.Kind, row.Hook = "other", "none"
		if p.python {
			row.Kind, row.Hook = "python", "idle"
		}
		if p.pid == w.Target {
			row.Kind = "target"
		}
		w.Rows.Append(row)
	})
	if !unhooked { // the hook knows better what kind of Python it is
		w.Rows.Append(row)
	}
	if !p.nameless {
		w.commands(p, row.Head)
	}
}

// commands writes what a shell's commands say of it.
func (w *watcher) commands(p *process, head traces.Head) {
	if looksAtStatus(p.pid, p.exe) {
		w.Rows.Append(traces.Act{Head: head, Op: "looks"})
	}
}

// judge finds out whether the hook could load in a Python. One that made a ring
// has it. One that never imports torch makes none, so the lack of it says
// nothing; the way it was started does.
func (w *watcher) judge(p *process, st procfs.Stat, now time.Time) {
	proc, _ := w.Procs.Of(p.pid, p.start)
	if proc.Hooked {
		p.judged = true
		return
	}
	torch, libpython := mapped(p.pid)
	if !p.python && !libpython {
		p.judged = p.judgements >= 3 // it has been there for seconds
		return
	}
	why := w.obstacle(p)
	if torch {
		if !w.starved(p, now) {
			p.torch++
		}
		switch {
		case why != "":
			why += "; " + torchLoaded
		case p.judgements >= 5 && p.torch >= since: // it has had seconds since
			why = w.unexplained(p, false)
		}
	}
	if why == "" {
		return
	}
	p.judged = torch
	w.unhooked(p, st, why)
}

// since is at how many looks a Python must have had torch until its hook should
// have told so: libtorch is mapped early in the import of torch, and the hook comes
// with the import of torch.utils.data, late in it.
const since = 3

// starved reports whether a Python that has torch has waited for a processor for
// most of the time since the last look: on a machine with much more to do than it
// can, the import of torch takes minutes.
func (w *watcher) starved(p *process, now time.Time) bool {
	_, waited, err := w.schedstat(p.pid)
	if err != nil {
		return false
	}
	before, at := p.delayed, p.withTorch
	p.delayed, p.withTorch = waited, now
	return !at.IsZero() && time.Duration(waited-before) > now.Sub(at)/2
}

// torchLoaded is what reports look for in the note of a process.
const torchLoaded = "torch is loaded"

// unexplained is why there is no hook in a Python that nothing kept it from. The
// hook tells of itself when torch is imported: one that has ended may not have
// come so far, on a disk or a machine that is slow.
func (w *watcher) unexplained(p *process, ended bool) string {
	if w.spool.fullSince(p.seen) {
		base := filepath.Dir(filepath.Dir(w.Spool)) // that the user can choose
		return torchLoaded + ", but there was no room for the hook's records in " + base + " (TMPDIR names another folder)"
	}
	const others = "another sitecustomize.py, or Python before 3.8"
	if ended {
		return torchLoaded + ", but the hook was not: torch was still being imported, or " + others
	}
	return torchLoaded + ", but the hook was not: " + others
}

// judgeEnded is about a Python that ended before judge could be sure: it had
// torch long enough for its hook to have told so.
func (w *watcher) judgeEnded(p *process) {
	if !p.judged && p.why == "" && (p.torch >= since || p.torch >= 1 && w.spool.fullSince(p.seen)) {
		w.unhooked(p, p.last, w.unexplained(p, true))
	}
}

// unhooked writes that the hook is not in a Python, and why.
func (w *watcher) unhooked(p *process, st procfs.Stat, why string) {
	if why == p.why {
		return
	}
	row := w.row(p, st)
	row.Kind, row.Hook, row.Note = "python", "off", why
	if p.pid == w.Target {
		row.Kind = "target"
	}
	if w.Procs.IfUnhooked(p.pid, p.start, func() { w.Rows.Append(row) }) && p.why == "" {
		w.Procs.MarkUnhooked()
	}
	p.why = why
}

// obstacle is why the hook cannot have loaded in a Python, "" if nothing spoke
// against it.
func (w *watcher) obstacle(p *process) string {
	env, err := procfs.Environ(p.pid)
	switch {
	case err != nil: // another user's
		env = nil
	case len(env) > 0:
	case p.judgements < 2: // it is calling exec right now
		env = nil
	default: // it was started with none at all
		env = []string{}
	}
	why := probe.Obstacle(procfs.Cmdline(p.pid), env, w.Hook)
	if why != "" && procfs.Link(p.pid, "exe") != p.exe { // it has become another program, whose environment this was
		return ""
	}
	return why
}

// mapped says which libraries a process has loaded.
func mapped(pid int32) (torch, libpython bool) {
	b, err := procfs.Read(pid, "maps")
	if err != nil {
		return false, false
	}
	maps := string(b)
	return strings.Contains(maps, "/libtorch"), strings.Contains(maps, "/libpython")
}

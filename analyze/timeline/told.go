package timeline

import (
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// ByParent is the Source of an Exit that no row of the table tells of, but the
// parent's Act whose Head it has.
const ByParent = "parent"

// joinTold gives processes what their parents were seen to learn of their ends.
// Where nobody else tells how one ended, it is that.
func joinTold(here []*Process) {
	byPid := map[int32][]*Process{}
	for _, p := range here {
		byPid[p.Pid] = append(byPid[p.Pid], p)
	}
	for _, parent := range here {
		for i := range parent.Acts {
			a := &parent.Acts[i]
			if a.Op != "status" {
				continue
			}
			if child := parent.child(byPid[a.Pid], a); child != nil {
				child.told(a)
			}
		}
		for _, child := range here {
			if len(parent.Acts) == 0 {
				break
			}
			if child.Parent == nil || child.Parent.Pid != parent.Pid || child.Final() != child {
				continue
			}
			for i := range parent.Acts {
				if a := &parent.Acts[i]; a.Op == "status" && a.Pid == 0 && a.BeginNS <= child.Begin && child.Begin <= a.TsNS {
					child.Told = append(child.Told, *a)
				}
			}
		}
	}
}

// child is the process whose end a parent learned of: the last one with its pid.
func (p *Process) child(candidates []*Process, a *traces.Act) (best *Process) {
	for _, c := range candidates {
		if c.Ppid == p.Pid && c.Begin <= a.TsNS && c.Final() == c && (best == nil || c.Begin >= best.Begin) {
			best = c
		}
	}
	return best
}

func (p *Process) told(a *traces.Act) {
	p.Told = append(p.Told, *a)
	if p.EndKnown() {
		return
	}
	e := &traces.Exit{Head: a.Head, ExitCode: a.ExitCode, Source: ByParent}
	if a.ExitCode < 0 {
		e.ExitCode, e.Signal = -1, -a.ExitCode
	}
	p.Exit = e
}

// Orderly reports whether a process ended by itself, and not by an exception that
// nobody caught: its exit code is what it chose.
func (p *Process) Orderly() bool {
	return slices.ContainsFunc(p.Final().Acts, func(a traces.Act) bool { return a.Op == "end" })
}

// Looks reports whether a process is a shell whose script looks at exit codes.
func (p *Process) Looks() bool {
	return slices.ContainsFunc(p.Acts, func(a traces.Act) bool { return a.Op == "looks" })
}

// SentBy finds where a process of the run was seen sending a signal to a process
// (or to its whole group) at about a time; nil: none was.
func (t *Timeline) SentBy(part *traces.Part, pid, signal int32, ns int64) (*Process, *traces.Act) {
	for _, p := range t.Processes {
		if p.Part != part || p.Pid == pid {
			continue
		}
		for i := range p.Acts {
			a := &p.Acts[i]
			if a.Op == "signal" && a.Signal == signal && (a.Pid == pid || a.Pid <= 0) && a.TsNS <= ns+late && ns-a.TsNS <= soon {
				return p, a
			}
		}
	}
	return nil, nil
}

package account

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// Processes is who took part in a run.
type Processes struct {
	Seen       int
	Kinds      map[string]int // how many of each: target, python, worker, other
	KernelOnly int            // that nobody but the kernel tier has seen: they lived too short for the others
	Unhooked   []Unhooked     // in the order in which they were seen
	Hooked     int            // Pythons that had the hook, whether they used torch or not
	Watched    int            // of them, that used torch
}

// Unhooked is a Python that was not watched from inside.
type Unhooked struct {
	Pid     int32
	Cmdline string
	Exe     string
	Reason  string
	Torch   bool   // it is known to have loaded torch
	Fix     string // how to record it; "" not known
}

// Unwatched reports whether no Python that used torch was watched from inside,
// although one did without the hook, or may have where no Python had it: then there is
// no verdict on anything.
func (p Processes) Unwatched() bool {
	torch := slices.ContainsFunc(p.Unhooked, func(u Unhooked) bool { return u.Torch })
	return p.Watched == 0 && (torch || p.Hooked == 0 && len(p.Unhooked) > 0)
}

// processes counts those of a timeline. Whether the kernel alone knows one
// follows from what the others would have written: the hook its presence,
// procfs a sample of memory.
func (l *ledger) processes(t *timeline.Timeline) Processes {
	all := Processes{Seen: len(t.Processes), Kinds: map[string]int{}}
	for _, p := range t.Processes {
		kind := p.Kind
		if kind == "" {
			kind = "other"
		}
		all.Kinds[kind]++
		_, sampled := l.target[procKey{p.Part, p.Proc}]
		if !sampled && p.Hook != "on" && l.tiers[p.Part].Name == "kernel" {
			all.KernelOnly++
		}
		if p.Hook == "off" {
			u := unhooked(p)
			u.Fix = fix(u, t.Command)
			all.Unhooked = append(all.Unhooked, u)
		} else if p.Hook == "on" || p.Hook == "idle" {
			all.Hooked++
			if p.Torch != "" {
				all.Watched++
			}
		}
	}
	return all
}

func unhooked(p *timeline.Process) Unhooked {
	u := Unhooked{Pid: p.Pid, Cmdline: p.Cmdline, Exe: p.Exe, Reason: p.Note}
	u.Torch = p.Torch != "" || strings.Contains(p.Note, "torch is loaded")
	if u.Reason == "" {
		u.Reason = "the hook did not load (-I, -E, -S, or a cleaned environment)"
	}
	return u
}

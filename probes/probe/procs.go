package probe

import (
	"sync"

	"github.com/dptrace/dptrace/traces"
)

// Proc is a process of the run as the probes know it.
type Proc struct {
	Number uint32 // traces.Head.Proc
	Pid    int32
	Start  uint64 // Stat.StartTicks; 0 unknown
	Hooked bool   // it has, or had, a ring
	Torch  bool   // it imported torch
	Exited bool   // a traces.Exit row was written
}

type identity struct {
	pid   int32
	start uint64
}

// Procs numbers the processes of a run. Its methods may be called from several
// goroutines.
type Procs struct {
	mu    sync.Mutex
	last  uint32
	alive map[identity]*Proc
	// Of the processes that ended only these counts remain: a training may
	// start and end millions of workers.
	torch, unhooked int
}

// NewProcs knows no process yet.
func NewProcs() *Procs { return &Procs{alive: map[identity]*Proc{}} }

// Of gives the process with this pid and start, and whether it was unknown until now.
func (p *Procs) Of(pid int32, start uint64) (proc Proc, isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := identity{pid, start}
	if known := p.alive[id]; known != nil {
		return *known, false
	}
	p.last++
	p.alive[id] = &Proc{Number: p.last, Pid: pid, Start: start}
	return *p.alive[id], true
}

// OfEnded gives the process that had this pid and ended before its start could
// be read. Another probe may have seen it alive.
func (p *Procs) OfEnded(pid int32) Proc {
	if proc, ok := p.ByPid(pid); ok && !proc.Hooked {
		return proc
	}
	return p.Exec(pid, 0)
}

// Exec gives a process its next number: it has called exec, and what its new
// program counts begins at 0 again.
func (p *Procs) Exec(pid int32, start uint64) Proc {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	proc := &Proc{Number: p.last, Pid: pid, Start: start}
	p.alive[identity{pid, start}] = proc
	return *proc
}

// Restore gives a process the number that it has in a trace already.
func (p *Procs) Restore(number uint32, pid int32, start uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = max(p.last, number)
	p.alive[identity{pid, start}] = &Proc{Number: number, Pid: pid, Start: start}
}

// Known reports whether pid with this start is of the run.
func (p *Procs) Known(pid int32, start uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive[identity{pid, start}] != nil
}

// ByPid gives the process that has, or had last, this pid.
func (p *Procs) ByPid(pid int32) (proc Proc, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, known := range p.alive {
		if id.pid == pid && (!ok || known.Number > proc.Number) {
			proc, ok = *known, true
		}
	}
	return proc, ok
}

// Alive lists the processes that nobody has seen end, in no order.
func (p *Procs) Alive() []Proc {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Proc, 0, len(p.alive))
	for _, known := range p.alive {
		all = append(all, *known)
	}
	return all
}

// MarkHooked notes that the process made a ring, and whether it had imported torch.
func (p *Procs) MarkHooked(pid int32, start uint64, torch bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.alive[identity{pid, start}]
	if known == nil {
		return
	}
	known.Hooked = true
	if torch && !known.Torch {
		known.Torch = true
		p.torch++
	}
}

// IfUnhooked runs f while it is sure that the process has no ring: what f writes
// comes before all that its hook tells, which therefore stands.
func (p *Procs) IfUnhooked(pid int32, start uint64, f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.alive[identity{pid, start}]; known == nil || known.Hooked {
		return false
	}
	f()
	return true
}

// MarkUnhooked counts a Python in which the hook could not load.
func (p *Procs) MarkUnhooked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unhooked++
}

// Exit writes the end of a process. That it vanished is written only if nothing
// better was: an exit code may follow from its parent.
func (p *Procs) Exit(rows Rows, pid int32, start uint64, e traces.Exit) {
	p.mu.Lock()
	known := p.alive[identity{pid, start}]
	if known == nil || known.Exited && e.Source == "gone" {
		p.mu.Unlock()
		return
	}
	known.Exited = true
	e.Proc = known.Number
	p.mu.Unlock()
	rows.Append(e)
}

// Forget drops a process that ended and of which nothing more will come.
func (p *Procs) Forget(pid int32, start uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, identity{pid, start})
}

// Count says how many hooked processes imported torch, and how many were Pythons
// in which the hook could not load.
func (p *Procs) Count() (torch, unhooked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.torch, p.unhooked
}

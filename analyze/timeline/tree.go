package timeline

import (
	"time"

	"github.com/dptrace/dptrace/traces"
)

// late is how much later than its child a process may have been noticed: without
// the kernel tier somebody has to look.
const late = int64(time.Second)

// joinTree finds the parents of the processes of one part, and those that
// are one process before and after it called exec.
func joinTree(here []*Process) {
	byPid := map[int32][]*Process{}
	for _, p := range here {
		byPid[p.Pid] = append(byPid[p.Pid], p)
	}
	for _, p := range here {
		for _, q := range byPid[p.Ppid] {
			if q != p && q.Pid != p.Pid && q.Begin <= p.Begin+late && (p.Parent == nil || q.Begin >= p.Parent.Begin) {
				p.Parent = q
			}
		}
		for _, q := range byPid[p.Pid] {
			if p.StartTicks == 0 || q.StartTicks != p.StartTicks || q.Proc <= p.Proc {
				continue
			}
			if p.Next == nil || q.Proc < p.Next.Proc {
				p.Next = q
			}
		}
	}
	for _, p := range here { // the end of a process that called exec is that of its last program
		for q := p.Next; q != nil; q = q.Next {
			if p.EndKnown() && !q.EndKnown() {
				q.Exit = p.Exit
			}
		}
	}
}

// Process finds the process of a row; nil if none of the run has this number.
func (t *Timeline) Process(part *traces.Part, proc uint32) *Process {
	return t.processes[part][proc]
}

// Final is the process's last program: it may have called exec.
func (p *Process) Final() *Process {
	for p.Next != nil {
		p = p.Next
	}
	return p
}

// Under reports whether q is an ancestor of p.
func (p *Process) Under(q *Process) bool {
	seen := 0
	for up := p.Parent; up != nil && seen < 1000; up = up.Parent { // pids that came back cannot make it run in circles
		if up == q || up.Final() == q.Final() {
			return true
		}
		seen++
	}
	return false
}

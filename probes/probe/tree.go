package probe

import (
	"sync"
	"time"

	"github.com/dptrace/dptrace/probes/procfs"
)

// Node is a process of the run as the eBPF programs know it.
type Node struct {
	ID     uint32 // that the kernel side gives it at its fork; never used again in a recording
	Parent uint32 // ID of who forked it; 0: the target, or an ID that was lost
	Proc   uint32 // traces.Head.Proc: of its latest program
	Pid    int32  // as the recorder sees it
	Start  uint64 // procfs.Stat.StartTicks
	// Inherit: it was forked with a memory of its own and has not called exec. What
	// it writes to may be its parent's.
	Inherit bool
	Ended   time.Time
	// Pages, known when it has ended.
	CowUser, CowKernel, AfterFork uint64
}

// Number is what rows about a process carry: of its program of now, or of its
// last one if it ended a while ago.
func (r *Recording) Number(of Node) uint32 {
	if !r.Procs.Known(of.Pid, of.Start) {
		return of.Proc
	}
	p, _ := r.Procs.Of(of.Pid, of.Start)
	return p.Number
}

// Tree is the process tree of the run, by the eBPF programs' ID. Its methods may
// be called from several goroutines.
type Tree struct {
	mu      sync.Mutex
	byID    map[uint32]*Node
	faults  uint64
	changes uint64
}

// NewTree knows no process yet.
func NewTree() *Tree { return &Tree{byID: map[uint32]*Node{}} }

// Changes grows with each process that is set.
func (t *Tree) Changes() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes
}

// Set adds a process, or replaces what is known about it.
func (t *Tree) Set(n Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[n.ID] = &n
	t.changes++
}

// Of gives the process with this ID.
func (t *Tree) Of(id uint32) (n Node, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byID[id]; p != nil {
		return *p, true
	}
	return n, false
}

// All lists the processes, in no order.
func (t *Tree) All() []Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Node, 0, len(t.byID))
	for _, n := range t.byID {
		all = append(all, *n)
	}
	return all
}

// ended reports whether all that are known have ended.
func (t *Tree) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.byID {
		if n.Ended.IsZero() {
			return false
		}
	}
	return true
}

// Forget drops a process of which nothing more will come.
func (t *Tree) Forget(id uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, id)
}

// AddFaults counts the page faults of a process that has ended.
func (t *Tree) AddFaults(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults += n
}

// Faults is the page faults of all processes so far, of all kinds.
func (t *Tree) Faults() uint64 {
	t.mu.Lock()
	n := t.faults
	t.mu.Unlock()
	for _, r := range t.All() {
		if r.Ended.IsZero() {
			if st, err := procfs.ReadStat(r.Pid); err == nil && st.StartTicks == r.Start {
				n += st.Faults
			}
		}
	}
	return n
}

package probe

import (
	"sync"
	"time"

	"github.com/dptrace/dptrace/probes/procfs"
)

// Relative is a process of the run as the eBPF programs know it.
type Relative struct {
	ID                            uint32 // that the kernel side gives it at its fork; never used again in a recording
	Parent                        uint32 // ID of who forked it; 0: the target, or an ID that was lost
	Proc                          uint32 // traces.Head.Proc: of its latest program
	Pid                           int32  // as the recorder sees it
	Start                         uint64 // Stat.StartTicks
	Inherit                       bool   // it was forked with a memory of its own and has not called exec: what it writes to may be its parent's
	Ended                         time.Time
	CowUser, CowKernel, AfterFork uint64 // pages, known when it has ended
}

// Number is what rows about a process carry: of its program of now, or of its
// last one if it ended a while ago.
func (r *Recording) Number(of Relative) uint32 {
	if !r.Procs.Known(of.Pid, of.Start) {
		return of.Proc
	}
	p, _ := r.Procs.Of(of.Pid, of.Start)
	return p.Number
}

// Kin is the processes of the run by the eBPF programs' ID. Its methods may be
// called from several goroutines.
type Kin struct {
	// Complete is closed when nothing more will be learnt: after the target's end
	// the ends of its descendants are in.
	Complete chan struct{}

	mu     sync.Mutex
	byID   map[uint32]*Relative
	faults uint64
}

// NewKin knows no process yet.
func NewKin() *Kin { return &Kin{Complete: make(chan struct{}), byID: map[uint32]*Relative{}} }

// Set adds a process, or replaces what is known about it.
func (k *Kin) Set(r Relative) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID[r.ID] = &r
}

// Of gives the process with this ID.
func (k *Kin) Of(id uint32) (r Relative, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.byID[id]; p != nil {
		return *p, true
	}
	return r, false
}

// All lists the processes, in no order.
func (k *Kin) All() []Relative {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]Relative, 0, len(k.byID))
	for _, r := range k.byID {
		all = append(all, *r)
	}
	return all
}

// Forget drops a process of which nothing more will come.
func (k *Kin) Forget(id uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byID, id)
}

// AddFaults counts the page faults of a process that has ended.
func (k *Kin) AddFaults(n uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults += n
}

// Faults is the page faults of all processes so far, of all kinds.
func (k *Kin) Faults() uint64 {
	k.mu.Lock()
	n := k.faults
	k.mu.Unlock()
	for _, r := range k.All() {
		if r.Ended.IsZero() {
			if st, err := procfs.ReadStat(r.Pid); err == nil && st.StartTicks == r.Start {
				n += st.Faults
			}
		}
	}
	return n
}

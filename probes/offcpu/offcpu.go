// Package offcpu says what the first thread of each process of the run waits for
// while it has no processor: bytes of files, pages, locks, sleeps. Looking and
// counting is done by bpf/offcpu.bpf.c.
package offcpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// Probe is bpf/offcpu.bpf.c.
var Probe = probe.Probe{
	Name: "offcpu",
	Doc:  "what workers wait for when they are blocked: files, locks, sleeps; from the kernel",
	Tier: probe.Kernel,
	Needs: []probe.Need{probe.Tracepoint("sched_switch",
		"what fetches are blocked in: reading files, a lock, a sleep; how long they are blocked remains")},
	After: []string{"process"},
	Late:  true,
	Start: kernelSide.Start,
}

var kernelSide = probe.KernelSide{
	Probe: "offcpu",
	Load:  loadOffcpu,
	Table: "off_cpu",
	Drops: []probe.Drop{
		{Variable: offcpuVarLostThreads, Table: "off_cpu", Reason: "switches of more processes at once than the offcpu probe counts for"},
	},
	Open: open,
}

const (
	youth     = time.Minute      // of a process, in which each look is told: its first fetches come meanwhile
	tellEvery = 10 * time.Second // later; the last row comes with the end
	batch     = 1024
)

// watcher turns what the programs count into rows.
type watcher struct {
	*probe.Recording
	threads *ebpf.Map
	told    map[uint32]*told // by the ID of the kernel side
	batches probe.Batches[uint32, offcpuOffCpu]
	err     error
}

// kinds is nanoseconds by kind.
type kinds [offcpuOffKindOFF_KINDS]uint64

// told is what was said of a process.
type told struct {
	first, last time.Time
	ns          kinds
}

func open(r *probe.Recording, p *probe.Programs) probe.Handler {
	w := &watcher{Recording: r, threads: p.Maps[offcpuMapThreads], told: map[uint32]*told{},
		batches: probe.Batches[uint32, offcpuOffCpu]{N: batch}}
	return probe.Handler{
		Second: func(now time.Time) { w.count(now, false) },
		Runs:   func() uint64 { return p.Counter(offcpuVarRuns, 0) },
		End: func() error {
			w.count(time.Now(), true)
			return w.err
		},
	}
}

// count writes what is due: of a process that has ended, as long as its end was
// known before its counts were read, for the last time.
func (w *watcher) count(now time.Time, all bool) {
	nodes := map[uint32]probe.Node{}
	for _, n := range w.Tree.All() {
		nodes[n.ID] = n
	}
	var spent []uint32
	err := w.batches.Each(w.threads, func(id *uint32, thread *offcpuOffCpu) {
		node, ok := nodes[*id]
		if !ok { // its fork is still in the ring
			return
		}
		ended := !node.Ended.IsZero()
		w.tell(node, counted(thread), now, all || ended)
		if ended {
			spent = append(spent, node.ID)
			delete(w.told, node.ID)
		}
	})
	if err != nil {
		w.err = fmt.Errorf("read what threads waited for: %w", err)
		return
	}
	for _, id := range spent {
		if err := w.threads.Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			w.err = fmt.Errorf("free the counts of ended processes: %w", err)
		}
	}
}

// counted is what a thread has waited for until now. Its last wait is added by the
// kernel side when it leaves its processor again, which it may never do; the time for
// which it then waited for a processor is not known yet.
func counted(t *offcpuOffCpu) kinds {
	ns := kinds(t.Ns)
	if t.Kind == 0 || int(t.Kind) > len(ns) {
		return ns
	}
	until := t.In
	if until == 0 {
		until = uint64(probe.Now())
	}
	if until > t.Out {
		ns[t.Kind-1] += until - t.Out
	}
	return ns
}

// tell writes a row about a process, if there is news.
func (w *watcher) tell(node probe.Node, ns kinds, now time.Time, last bool) {
	t := w.told[node.ID]
	if t == nil {
		t = &told{first: now}
		w.told[node.ID] = t
	}
	often := now.Sub(t.first) < youth || now.Sub(t.last) >= tellEvery
	if !last && (ns == t.ns || !often) {
		return
	}
	t.last, t.ns = now, ns
	of := func(kind offcpuOffKind) int64 { return int64(ns[kind]) }
	w.Rows.Append(traces.OffCpu{Head: traces.Head{TsNS: probe.Now(), Proc: w.Number(node)}, Inherits: node.Inherit,
		ReadNS: of(offcpuOffKindOFF_READ), PageNS: of(offcpuOffKindOFF_PAGE), NameNS: of(offcpuOffKindOFF_NAME),
		ChannelNS: of(offcpuOffKindOFF_CHANNEL), LockNS: of(offcpuOffKindOFF_LOCK), SleepNS: of(offcpuOffKindOFF_SLEEP),
		ChildNS: of(offcpuOffKindOFF_CHILD), WriteNS: of(offcpuOffKindOFF_WRITE), OtherNS: of(offcpuOffKindOFF_OTHER),
		Final: !node.Ended.IsZero()})
}

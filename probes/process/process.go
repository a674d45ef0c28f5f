// Package process follows every process of the run from the kernel: when it is
// forked, calls exec, gets a signal and from whom, is chosen by the
// out-of-memory killer, and how it ends. It misses none, however short it lives
// and whatever it runs.
package process

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
)

// Probe is bpf/process.bpf.c. The other probes of the kernel tier count for the
// processes that it follows.
var Probe = probe.Probe{
	Name:  "process",
	Doc:   "every process of the run, hooked or not: exec, exit, signals with their sender, out-of-memory kills; from the kernel",
	Tier:  probe.Kernel,
	Needs: needs,
	Start: kernelSide.Start,
}

var kernelSide = probe.KernelSide{
	Probe:   "process",
	Load:    loadProcess,
	Prepare: configure,
	Ring:    processMapEvents,
	Pause:   100 * time.Millisecond, // BELL_NS of bpf/process.bpf.c
	Table:   "process",
	Drops: []probe.Drop{
		{Variable: processVarLost, Index: int(processKindKIND_FORK), Table: "process", Reason: ringFull + "forks)"},
		{Variable: processVarLost, Index: int(processKindKIND_EXEC), Table: "process", Reason: ringFull + "execs)"},
		{Variable: processVarLost, Index: int(processKindKIND_EXIT), Table: "exit", Reason: ringFull + "exits)"},
		{Variable: processVarLost, Index: int(processKindKIND_SIGNAL), Table: "signal", Reason: ringFull + "signals)"},
		{Variable: processVarLost, Index: int(processKindKIND_OOM), Table: "oom", Reason: ringFull + "out-of-memory kills)"},
		{Variable: processVarLostProcs, Table: "process",
			Reason: "more processes at once than the process probe follows; their descendants are not seen either"},
	},
	Follows: true,
	Open:    open,
}

const ringFull = "the ring of the process probe was full ("

const remember = 30 * time.Second // of an ended process, for what others tell about it

// watcher turns the programs' events into rows.
type watcher struct {
	*probe.Recording
	ended []probe.Node // in the order of their ends
}

func open(r *probe.Recording, _ *probe.Programs) probe.Handler {
	w := &watcher{Recording: r}
	return probe.Handler{Take: w.take, Second: w.forget}
}

// configure tells the programs whom to follow and how the recorder sees pids,
// and leaves out what this kernel has not.
func configure(spec *ebpf.CollectionSpec, r *probe.Recording) error {
	inode, err := pidNamespace()
	if err != nil {
		return err
	}
	for name, value := range map[string]uint32{processVarTargetPid: uint32(r.Target), processVarPidns: inode} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	if err := features.HaveProgramHelper(ebpf.RawTracepoint, asm.FnFindVma); errors.Is(err, ebpf.ErrNotSupported) {
		if err := spec.Variables[processVarFindsMappings].Set(uint8(0)); err != nil {
			return fmt.Errorf("set %s: %w", processVarFindsMappings, err)
		}
	}
	byPid, err := passesPid(r.KernelTypes)
	switch {
	case errors.Is(err, btf.ErrNotFound): // kernels without this tracepoint have no memory control at all
		delete(spec.Programs, processProgOomTask)
		delete(spec.Programs, processProgOomPid)
	case err != nil:
		return err
	case byPid:
		delete(spec.Programs, processProgOomTask)
	default:
		delete(spec.Programs, processProgOomPid)
	}
	return nil
}

// passesPid reports whether the tracepoint mark_victim has the pid as its
// argument, as before Linux 6.9, and not the task.
func passesPid(kernel *probe.KernelBTF) (bool, error) {
	const tracepoint = "btf_trace_mark_victim"
	types, err := kernel.Pick(tracepoint)
	if err != nil {
		return false, err
	}
	var t *btf.Typedef
	if err := types.TypeByName(tracepoint, &t); err != nil {
		return false, err
	}
	p, ok := t.Type.(*btf.Pointer)
	if !ok {
		return false, errors.New("btf_trace_mark_victim is no pointer")
	}
	f, ok := p.Target.(*btf.FuncProto)
	if !ok || len(f.Params) < 2 { // the first is the tracepoint's own
		return false, errors.New("btf_trace_mark_victim is no function")
	}
	_, isTask := f.Params[1].Type.(*btf.Pointer)
	return !isTask, nil
}

// forget drops processes that ended a while ago.
func (w *watcher) forget(now time.Time) {
	for len(w.ended) > 0 && now.Sub(w.ended[0].Ended) > remember {
		r := w.ended[0]
		w.ended = w.ended[1:]
		w.Procs.Forget(r.Pid, r.Start)
		w.Tree.Forget(r.ID)
	}
}

// pidNamespace is the inode number of the recorder's pid namespace.
func pidNamespace() (uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("pid namespace: %w", err)
	}
	return uint32(st.Ino), nil
}

// Package process follows every process of the run from the kernel: when it is
// forked, calls exec, gets a signal and from whom, is chosen by the
// out-of-memory killer, and how it ends. It misses none, however short it lives
// and whatever it runs.
package process

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
)

// Probe is bpf/process.bpf.c. It comes before the other probes of the kernel
// tier: they count for the processes that it follows.
var Probe = probe.Probe{
	Name:  "process",
	Doc:   "every process of the run, hooked or not: exec, exit, signals with their sender, out-of-memory kills; from the kernel",
	Tier:  probe.Kernel,
	Needs: needs,
	Start: start,
}

const (
	lookEvery = 100 * time.Millisecond
	tellEvery = time.Second
	costEvery = 5 * time.Second
	remember  = 30 * time.Second // of an ended process, for what others tell about it

	// Descendants may live on after the target, as daemons do; they get this
	// long to end.
	grace = time.Second
)

// watcher turns the programs' events into rows.
type watcher struct {
	*probe.Recording
	programs *probe.Programs
	ring     *ringbuf.Reader
	losses   probe.Losses
	ended    []probe.Relative // in the order of their ends
	bad      uint64           // events that could not be decoded
	began    time.Duration    // CPU time of the thread before
	events   uint64
}

func start(r *probe.Recording) (probe.Watch, error) {
	spec, err := loadProcess()
	if err != nil {
		return nil, fmt.Errorf("read the eBPF object: %w", err)
	}
	if err := configure(spec, r.Target); err != nil {
		return nil, err
	}
	programs, err := probe.Attach(spec, nil)
	if err != nil {
		return nil, err
	}
	ring, err := ringbuf.NewReader(programs.Maps[processMapEvents])
	if err != nil {
		programs.Close()
		return nil, fmt.Errorf("open the eBPF ring: %w", err)
	}
	r.Descendants, r.Kin = programs.Maps[processMapProcs], probe.NewKin()
	w := &watcher{Recording: r, programs: programs, ring: ring}
	return w.watch, nil
}

// configure tells the programs whom to follow and how the recorder sees pids,
// and leaves out what this kernel has not.
func configure(spec *ebpf.CollectionSpec, target int32) error {
	inode, err := pidNamespace()
	if err != nil {
		return err
	}
	for name, value := range map[string]uint32{"target_pid": uint32(target), "pidns": inode} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	byPid, err := passesPid()
	switch {
	case errors.Is(err, btf.ErrNotFound): // kernels without this tracepoint have no memory control at all
		delete(spec.Programs, processProgOomTask)
		delete(spec.Programs, processProgOomPid)
	case err != nil:
		return fmt.Errorf("kernel BTF: %w", err)
	case byPid:
		delete(spec.Programs, processProgOomTask)
	default:
		delete(spec.Programs, processProgOomPid)
	}
	return nil
}

// passesPid tells whether the tracepoint mark_victim has the pid as its
// argument, as before Linux 6.9, and not the task.
func passesPid() (bool, error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return false, err
	}
	var t *btf.Typedef
	if err := kernel.TypeByName("btf_trace_mark_victim", &t); err != nil {
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

func (w *watcher) watch(ctx context.Context) error {
	defer w.programs.Close()
	defer func() { _ = w.ring.Close() }()
	defer close(w.Kin.Complete)
	defer context.AfterFunc(ctx, func() { _ = w.ring.Flush() })() // do not wait for the next look
	runtime.LockOSThread()                                        // its CPU time is what watching costs
	defer runtime.UnlockOSThread()
	w.began = probe.ThreadCPU()
	told, costed := time.Now(), time.Now()
	for ctx.Err() == nil {
		now := time.Now()
		if err := probe.Drain(w.ring, now.Add(lookEvery), w.take); err != nil {
			return err
		}
		if now.Sub(told) >= tellEvery {
			told = now
			w.tell()
			w.forget(now)
		}
		w.programs.Measure(now)
		if now.Sub(costed) >= costEvery {
			costed = now
			w.cost()
		}
	}
	for end := time.Now().Add(grace); ; {
		if err := probe.Drain(w.ring, time.Now().Add(lookEvery/10), w.take); err != nil {
			return err
		}
		if w.allEnded() || time.Now().After(end) {
			break
		}
	}
	w.tell()
	w.cost()
	return nil
}

func (w *watcher) allEnded() bool {
	for _, r := range w.Kin.All() {
		if r.Ended.IsZero() {
			return false
		}
	}
	return true
}

// tell writes what found no room.
func (w *watcher) tell() {
	var lost [processKindKINDS]uint64
	w.programs.Counter("lost", &lost)
	for kind, table := range map[processKind]string{processKindKIND_FORK: "process", processKindKIND_EXEC: "process", processKindKIND_EXIT: "exit", processKindKIND_SIGNAL: "signal", processKindKIND_OOM: "oom"} {
		w.losses.Tell(w.Rows, table, fmt.Sprintf("the ring of the process probe was full (%s)", kindNames[kind]), lost[kind])
	}
	var procs uint64
	w.programs.Counter("lost_procs", &procs)
	w.losses.Tell(w.Rows, "process", "more processes at once than the process probe follows; their descendants are not seen either", procs)
	w.losses.Tell(w.Rows, "process", "events of the process probe could not be decoded", w.bad)
}

func (w *watcher) cost() {
	w.Rows.Append(w.programs.Cost("process", probe.ThreadCPU()-w.began, w.events))
}

// forget drops processes that ended a while ago.
func (w *watcher) forget(now time.Time) {
	for len(w.ended) > 0 && now.Sub(w.ended[0].Ended) > remember {
		r := w.ended[0]
		w.ended = w.ended[1:]
		w.Procs.Forget(r.Pid, r.Start)
		w.Kin.Forget(r.ID)
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

// Package cuda watches what processes of the run ask of the CUDA driver: copies
// between host and device, what waits for them, and the memory that is pinned. It
// does so by uprobes on what libcuda exports, whoever calls that; see
// bpf/cuda.bpf.c. Where there is no libcuda nothing is loaded.
package cuda

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// Probe is bpf/cuda.bpf.c.
var Probe = probe.Probe{
	Name:  "cuda",
	Doc:   "copies between host and device, what waits for them, and pinned memory: calls of the CUDA driver, by uprobes",
	Tier:  probe.Kernel,
	Needs: needs,
	After: []string{"process"},
	Start: start,
}

// side is the kernel side, for a watcher that says where it is attached.
func side(w *watcher) *probe.KernelSide {
	return &probe.KernelSide{
		Probe: "cuda",
		Load:  loadCuda,
		Prepare: func(spec *ebpf.CollectionSpec, _ *probe.Recording) error {
			w.choose(spec)
			return spec.Variables[cudaVarMostCopies].Set(mostCopies)
		},
		Attach: func(p *probe.Programs) error {
			w.programs = p
			for _, l := range w.first {
				w.attach(l)
			}
			return nil
		},
		Ring:  cudaMapCudaCalls,
		Pause: 100 * time.Millisecond, // BELL_NS of bpf/cuda.bpf.c
		Table: "copy",
		Drops: []probe.Drop{
			{Variable: cudaVarLostEvents, Table: "copy", Reason: "the ring of the cuda probe was full"},
			{Variable: cudaVarLimitedEvents, Table: "copy", Reason: "more than 100,000 copies a second: the others are counted only"},
			{Variable: cudaVarLostCounts, Table: "cuda_calls", Reason: "functions of more processes at once than the cuda probe counts for"},
			{Variable: cudaVarLostCalls, Table: "copy", Reason: "the kernel had no memory to note a thread's calls"},
		},
		Open: w.open,
	}
}

// mostCopies is how many copies in 100 ms have records: a hundred thousand a second
// take the recorder a fifth of a core. A variable for tests.
var mostCopies uint64 = 10000

// haveMulti is nil where one link can take many functions.
var haveMulti = features.HaveBPFLinkUprobeMulti

// choose leaves the programs that this kernel can attach: all functions by one
// link, or one by one.
func (w *watcher) choose(spec *ebpf.CollectionSpec) {
	w.how = "multi"
	if haveMulti() != nil {
		w.how = "single"
	}
	for name := range spec.Programs {
		all := name == cudaProgEnterAll || name == cudaProgLeaveAll
		if all != (w.how == "multi") {
			delete(spec.Programs, name)
		}
	}
}

// finder looks for libraries of CUDA, and begins to watch with the first.
type finder struct {
	*probe.Recording
	watch  probe.Watch // once there is one
	w      *watcher
	looked map[uint32]look // by node
	next   time.Time
	failed error // it cannot be watched here
}

// look is when a process is looked at again. Programs load the driver with the first
// tensor on a device, which may be soon or never.
type look struct {
	next  time.Time
	after time.Duration
}

const (
	searchEvery = time.Second
	searchLeast = 64 * time.Second // between looks at a process that has been looked at for as long
)

func start(r *probe.Recording) (probe.Watch, error) {
	f := &finder{Recording: r, looked: map[uint32]look{}}
	if supported() {
		f.take(installed(os.Environ()))
	}
	return probe.Watch{Look: f.look, End: f.end, Close: f.close}, nil
}

// begin loads the programs and attaches them to the first libraries.
func (f *finder) begin(found []library) error {
	w := &watcher{Recording: f.Recording, first: found}
	watch, err := side(w).Start(f.Recording)
	if err != nil {
		return fmt.Errorf("watch CUDA: %w", err)
	}
	f.w, f.watch = w, watch
	return nil
}

func (f *finder) look(t probe.Turn) (next time.Time, err error) {
	if !f.next.After(t.Until) {
		f.next = t.Now.Add(searchEvery)
		f.search(t.Now)
	}
	if f.w == nil {
		return f.next, nil
	}
	next, err = f.watch.Look(t)
	if f.next.Before(next) {
		next = f.next
	}
	return next, err
}

// search looks at the mappings of processes: at those of one a second after it was
// first seen, and then after twice as long each time.
func (f *finder) search(now time.Time) {
	if f.failed != nil || !supported() {
		return
	}
	for _, n := range f.Tree.All() {
		l, known := f.looked[n.ID]
		switch {
		case !n.Ended.IsZero():
			delete(f.looked, n.ID)
			continue
		case n.Inherit || l.next.After(now): // a forked one has what its parent has
			continue
		}
		l.after = min(max(2*l.after, searchEvery), searchLeast)
		l.next = now.Add(l.after)
		f.looked[n.ID] = l
		if !known {
			continue
		}
		found, err := mapped(n.Pid)
		if err != nil { // it has ended
			continue
		}
		f.take(found)
	}
}

// take watches libraries that are not watched yet. Without a driver there is
// nothing to watch: the runtime is mapped by any torch that was built for CUDA.
func (f *finder) take(found []library) {
	if f.w == nil {
		if !slices.ContainsFunc(found, func(l library) bool { return l.kind == ofDriver }) {
			return
		}
		if f.failed = f.begin(found); f.failed != nil {
			f.Rows.Append(traces.CudaLibrary{Head: traces.Head{TsNS: probe.Now()}, Library: ofDriver, Path: found[0].named, Note: f.failed.Error()})
		}
		return
	}
	for _, l := range found {
		if !f.w.watches(l) {
			f.w.attach(l)
		}
	}
}

func (f *finder) end(t probe.Turn) error {
	if f.watch.End == nil {
		return nil
	}
	return f.watch.End(t)
}

func (f *finder) close() {
	if f.watch.Close != nil {
		f.watch.Close()
	}
}

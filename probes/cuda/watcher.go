package cuda

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

const (
	countEvery  = 10 * time.Second
	mostWaiting = 1 << 16 // events of processes that are not known yet
	mostThreads = 1 << 14
)

// watcher turns calls into rows.
type watcher struct {
	*probe.Recording
	programs  *probe.Programs
	how       string // multi, single
	first     []library
	libraries []*attached
	counts    *ebpf.Map
	next      time.Time
	waiting   []cudaCudaEvent // of processes whose fork is still in the ring of the process probe
	unknown   uint64          // events that were given up
	runs      uint64          // of the programs, as of the last count
	copies    map[uint32]*latest
	of        *latest         // of the thread that copied last
	seen      map[uint32]bool // nodes that have called anything
	told      map[cudaCudaKey]cudaCudaCount
	callers   *probe.Sites
	caller    caller // whose event came last, until the next look
}

// latest is a thread's latest copy, until it is known what came next.
type latest struct {
	thread uint32
	open   bool // the row is one that is not written yet
	row    traces.Copy
}

// caller is a process that is asked for with each of its events, of which there may be a hundred thousand in a second.
type caller struct {
	node   probe.Node
	number uint32
	known  bool
}

func (w *watcher) open(_ *probe.Recording, p *probe.Programs) probe.Handler {
	w.counts = p.Maps[cudaMapCounts]
	w.callers = callers(w.Recording, p)
	w.callers.Follow()
	w.copies, w.seen, w.told = map[uint32]*latest{}, map[uint32]bool{}, map[cudaCudaKey]cudaCudaCount{}
	return probe.Handler{
		Take: w.take,
		Look: w.look,
		Runs: func() uint64 { return w.runs },
		End:  w.end,
	}
}

func (w *watcher) take(raw []byte) bool {
	if len(raw) < int(unsafe.Sizeof(cudaCudaEvent{})) { // the ring rounds sizes up
		return false
	}
	e := *(*cudaCudaEvent)(unsafe.Pointer(unsafe.SliceData(raw))) // 20 times as fast as binary.Decode, which is half of the recorder's work
	if int(e.Function) >= len(functions) {
		return false
	}
	if len(w.waiting) == 0 && w.tell(&e) {
		return true
	}
	if len(w.waiting) >= mostWaiting {
		w.unknown++
	} else {
		w.waiting = append(w.waiting, e)
	}
	return true
}

// tell writes what is known by an event. It reports whether its process is known.
func (w *watcher) tell(e *cudaCudaEvent) bool {
	if !w.caller.known || w.caller.node.ID != e.Id {
		n, ok := w.Tree.Of(e.Id)
		if !ok {
			return false
		}
		w.known(n)
		w.caller = caller{node: n, number: w.Number(n), known: true}
	}
	n := &w.caller
	f := &functions[e.Function]
	if e.After != 0 {
		w.follows(e, f)
	}
	switch {
	case e.After == uint32(cudaCudaAfterCUDA_ONLY_AFTER):
	case f.copies():
		w.copied(e, f, n)
	default:
		w.remembered(e, n)
	}
	return true
}

// known says, with its first call, of a process that it uses the libraries. A
// forked one has what its parent made before, which nobody has seen there.
func (w *watcher) known(n probe.Node) {
	if w.seen[n.ID] {
		return
	}
	w.seen[n.ID] = true
	for _, a := range w.libraries {
		if a.row.How == "" {
			continue
		}
		row := a.row
		row.TsNS, row.Proc = probe.Now(), w.Number(n)
		row.Late = a.late[n.ID] || n.Inherit && (w.seen[n.Parent] || a.late[n.Parent])
		w.Rows.Append(row)
	}
}

var kinds = map[cudaCudaClass]string{
	cudaCudaClassCUDA_PINNED: "pinned", cudaCudaClassCUDA_MANAGED: "managed", cudaCudaClassCUDA_REGISTERED: "registered",
	cudaCudaClassCUDA_FREED: "freed", cudaCudaClassCUDA_UNREGISTERED: "unregistered",
}

// remembered writes what the driver was told of memory. What is freed is so from
// when the call began; what is made, from when it had ended.
func (w *watcher) remembered(e *cudaCudaEvent, n *caller) {
	row := traces.HostMemory{Head: traces.Head{TsNS: int64(e.TsNs), Proc: n.number}, What: kinds[e.Class], Address: e.Source}
	if e.Class != cudaCudaClassCUDA_FREED && e.Class != cudaCudaClassCUDA_UNREGISTERED {
		row.TsNS, row.Bytes = int64(e.TsNs+e.DurNs), int64(e.Bytes)
	}
	w.Rows.Append(row)
}

// copied keeps a copy until it is known which call of its thread came next.
func (w *watcher) copied(e *cudaCudaEvent, f *function, n *caller) {
	w.callers.Tell(e.Site, n.node)
	l := w.latest(e.Thread)
	w.give(l)
	direction := direction(e, f)
	if direction == "device" || direction == "host" {
		return // between the two is what copies are recorded for
	}
	l.row = traces.Copy{Head: traces.Head{TsNS: int64(e.TsNs), Proc: n.number}, SeenBy: "driver", Thread: int32(e.Thread), Main: e.Main == 1,
		Function: f.name, Direction: direction, Source: e.Source, Target: e.Target, Bytes: int64(e.Bytes), Rows: int64(e.Rows),
		Async: f.async, Stream: e.Stream, CallNS: int64(e.DurNs), Result: e.Result, Capturing: e.Capturing == 1, GapNS: -1,
		Compute: [...]string{"", "same", "other"}[min(e.Compute, 2)], Site: e.Site}
	l.open = true
}

// latest is where a thread's latest copy is kept. Threads that have ended make room when there are many.
func (w *watcher) latest(thread uint32) *latest {
	if w.of != nil && w.of.thread == thread {
		return w.of
	}
	l := w.copies[thread]
	if l == nil {
		if len(w.copies) >= mostThreads {
			for _, old := range w.copies {
				w.give(old)
			}
			clear(w.copies)
		}
		l = &latest{thread: thread}
		w.copies[thread] = l
	}
	w.of = l
	return l
}

// direction is what is known of a copy's.
func direction(e *cudaCudaEvent, f *function) string {
	switch {
	case f.direction != "":
		return f.direction
	case f.class == cudaCudaClassCUDA_COPY_2D || f.class == cudaCudaClassCUDA_COPY_2D_NOW:
		const host, device, array = 1, 2, 3 // CUmemorytype
		on := map[uint32]string{host: "host", device: "device", array: "device"}
		return way(on[e.Direction/16], on[e.Direction%16])
	}
	// cudaMemcpyKind + 1; 0: not called by the runtime; cudaMemcpyDefault tells nothing.
	ways := [...]string{"", "host", "to-device", "to-host", "device", ""}
	return ways[min(int(e.Direction), len(ways)-1)]
}

func way(from, to string) string {
	switch {
	case from == "" || to == "":
		return ""
	case from == to:
		return from
	case to == "device":
		return "to-device"
	}
	return "to-host"
}

// follows completes the copy that a call came after.
func (w *watcher) follows(e *cudaCudaEvent, f *function) {
	l := w.latest(e.Thread)
	if !l.open {
		return
	}
	l.row.GapNS, l.row.Next = int64(e.GapNs), next(e, f, l.row.Stream)
	if f.class >= cudaCudaClassCUDA_STREAM_SYNC && f.class <= cudaCudaClassCUDA_EVENT_SYNC {
		l.row.NextNS = int64(e.DurNs)
	}
	w.give(l)
}

func next(e *cudaCudaEvent, f *function, stream uint64) string {
	switch f.class {
	case cudaCudaClassCUDA_STREAM_SYNC:
		if e.Stream == stream {
			return "stream-sync"
		}
		return "other-stream-sync"
	case cudaCudaClassCUDA_CONTEXT_SYNC:
		return "context-sync"
	case cudaCudaClassCUDA_EVENT_SYNC:
		return "event-sync"
	case cudaCudaClassCUDA_EVENT:
		return "event"
	case cudaCudaClassCUDA_LAUNCH, cudaCudaClassCUDA_LAUNCH_EX, cudaCudaClassCUDA_LAUNCH_GRAPH, cudaCudaClassCUDA_CAPTURE,
		cudaCudaClassCUDA_CAPTURED:
		return "launch"
	}
	if f.copies() || f.class == cudaCudaClassCUDA_COPY_DEVICE {
		return "copy"
	}
	return "memory"
}

// give writes a copy, if it is not written yet.
func (w *watcher) give(l *latest) {
	if l.open {
		w.Rows.Append(&l.row)
		l.open = false
	}
}

func (w *watcher) look(now time.Time) (next time.Time, err error) {
	w.caller.known = false
	w.retry()
	if now.Before(w.next) {
		return w.next, nil
	}
	w.next = now.Add(countEvery)
	return w.next, w.count(false)
}

// retry takes the events whose processes were not known.
func (w *watcher) retry() {
	kept := w.waiting[:0]
	for i := range w.waiting {
		if !w.tell(&w.waiting[i]) {
			kept = append(kept, w.waiting[i])
		}
	}
	w.waiting = kept
}

func (w *watcher) end() error {
	w.retry()
	err := w.count(true)
	for _, l := range w.copies {
		w.give(l)
	}
	w.programs.Lost("copy", "calls of processes whose fork was lost", w.unknown+uint64(len(w.waiting)))
	return err
}

// count writes how often functions were called, where that has changed.
func (w *watcher) count(all bool) error {
	nodes := map[uint32]probe.Node{} // before the counts: of who has ended by now they are complete
	for _, n := range w.Tree.All() {
		nodes[n.ID] = n
	}
	var spent []cudaCudaKey
	var key cudaCudaKey
	var n cudaCudaCount
	entries := w.counts.Iterate()
	for entries.Next(&key, &n) {
		node, ok := nodes[key.Id]
		if !ok || int(key.Function) >= len(functions) {
			continue
		}
		w.known(node)
		ended := !node.Ended.IsZero()
		w.runs += n.Calls - w.told[key].Calls
		if was, told := w.told[key]; !told || was != n || ended || all {
			f := functions[key.Function]
			w.Rows.Append(traces.CudaCalls{Head: traces.Head{TsNS: probe.Now(), Proc: w.Number(node)}, Library: f.library, Function: f.name,
				Calls: n.Calls, NS: n.Ns, Bytes: n.Bytes, Small: n.Small, SmallNS: n.SmallNs, Failed: n.Failed, Final: ended})
			w.told[key] = n
		}
		if ended {
			spent = append(spent, key)
		}
	}
	if err := entries.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return fmt.Errorf("read the counts of CUDA's calls: %w", err)
	}
	for _, key := range spent {
		delete(w.told, key)
		if err := w.counts.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("free the counts of ended processes: %w", err)
		}
	}
	return nil
}

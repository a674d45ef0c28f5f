// Package files says which data files each process of the run opens for reading,
// hooked or not, however short they are open. Looking is done by
// bpf/files.bpf.c.
package files

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// Probe is bpf/files.bpf.c.
var Probe = probe.Probe{
	Name:  "files",
	Doc:   "data files that each process of the run opens for reading; from the kernel",
	Tier:  probe.Kernel,
	Needs: needs,
	Start: start,
}

const (
	lookEvery = 100 * time.Millisecond
	tellEvery = time.Second
	costEvery = 5 * time.Second
)

// watcher turns what processes open into rows.
type watcher struct {
	*probe.Recording
	programs *probe.Programs
	ring     *ringbuf.Reader
	waiting  []opening           // of processes whose fork is still in the ring of the process probe
	procs    map[uint32]*process // by the ID of the kernel side
	losses   probe.Losses
	orphans  uint64        // events of processes that never became known
	nameless uint64        // files with a relative name that were not found
	bad      uint64        // events that could not be decoded
	began    time.Duration // CPU time of the thread before
}

// opening is an event and where its file is.
type opening struct {
	filesOpenEvent
	path string // "" not found yet
}

// process is what is known of one that has opened files.
type process struct {
	folder string // its working directory, when it was last asked for it; "" never
	files  []file // that were told
}

// file is one that was told, and where its opens are counted.
type file struct {
	key  filesOpened
	path string
}

func start(r *probe.Recording) (probe.Watch, error) {
	if r.Descendants == nil {
		return nil, errors.New("the process probe did not start")
	}
	spec, err := loadFiles()
	if err != nil {
		return nil, fmt.Errorf("read the eBPF object: %w", err)
	}
	programs, err := probe.Attach(spec, map[string]*ebpf.Map{filesMapProcs: r.Descendants})
	if err != nil {
		return nil, err
	}
	ring, err := ringbuf.NewReader(programs.Maps[filesMapFiles])
	if err != nil {
		programs.Close()
		return nil, fmt.Errorf("open the eBPF ring: %w", err)
	}
	w := &watcher{Recording: r, programs: programs, ring: ring, procs: map[uint32]*process{}}
	return w.watch, nil
}

func (w *watcher) watch(ctx context.Context) error {
	defer w.programs.Close()
	defer func() { _ = w.ring.Close() }()
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
		w.tell()
		if now.Sub(told) >= tellEvery {
			told = now
			w.finish(false)
			w.tellLost()
		}
		w.programs.Measure(now)
		if now.Sub(costed) >= costEvery {
			costed = now
			w.cost()
		}
	}
	<-w.Kin.Complete
	if err := probe.Drain(w.ring, time.Now(), w.take); err != nil {
		return err
	}
	w.tell()
	w.orphans = uint64(len(w.waiting))
	w.finish(true)
	w.tellMore()
	w.tellLost()
	w.cost()
	return nil
}

// take finds out what was opened, at once: the process may be asked for its
// folder. Of whom it is told may not be known yet.
func (w *watcher) take(raw []byte) {
	var e filesOpenEvent
	if n, err := binary.Decode(raw, binary.NativeEndian, &e); err != nil || n > len(raw) { // the ring rounds sizes up
		w.bad++
		return
	}
	w.waiting = append(w.waiting, opening{e, w.pathOf(&e)})
}

// tell writes the first open of each file whose process is known by now.
func (w *watcher) tell() {
	unknown := w.waiting[:0]
	for _, e := range w.waiting {
		r, ok := w.Kin.Of(e.Id)
		if !ok {
			unknown = append(unknown, e)
			continue
		}
		if e.path == "" {
			e.path = w.search(&e.filesOpenEvent, r)
		}
		switch {
		case e.path == "":
			w.nameless++
			continue
		case !isData(e.path) || w.ours(e.path):
			continue
		}
		w.Rows.Append(traces.Opened{Head: traces.Head{TsNS: int64(e.TsNs), Proc: w.Number(r)}, Path: e.path, Count: 1, Source: "kernel"})
		p := w.of(e.Id)
		p.files = append(p.files, file{filesOpened{Id: e.Id, Device: e.Device, Generation: e.Generation, Number: e.Number}, e.path})
	}
	w.waiting = unknown
}

func (w *watcher) of(id uint32) *process {
	if w.procs[id] == nil {
		w.procs[id] = &process{}
	}
	return w.procs[id]
}

// ours tells whether a file is one of the hook's.
func (w *watcher) ours(path string) bool {
	return strings.HasPrefix(path, w.Spool+"/") || strings.HasPrefix(path, w.Hook+"/")
}

// finish writes how often the files of processes that have ended were opened, if
// more than once; at the end of the recording, of all.
func (w *watcher) finish(all bool) {
	opens := w.programs.Maps[filesMapOpens]
	for id, p := range w.procs {
		r, ok := w.Kin.Of(id)
		if !all && (!ok || r.Ended.IsZero()) {
			continue
		}
		delete(w.procs, id)
		for _, f := range p.files {
			var n uint64
			if err := opens.Lookup(f.key, &n); err != nil { // it was pushed out: how often is not known
				continue
			}
			_ = opens.Delete(f.key) // what stays is pushed out some day
			if n > 1 && ok {
				w.Rows.Append(traces.Opened{Head: traces.Head{TsNS: probe.Now(), Proc: w.Number(r)}, Path: f.path, Count: n, Source: "kernel"})
			}
		}
	}
}

// tellMore writes how many opens there were beyond what is told of each process:
// a dataset may have a million files, of which the first ones say where it lies.
func (w *watcher) tellMore() {
	var n uint64
	w.programs.Counter(filesVarLostMore, &n)
	if n > 0 {
		w.Rows.Append(traces.Opened{Head: traces.Head{TsNS: probe.Now()}, Count: n, Source: "kernel"})
	}
}

// tellLost writes what found no room.
func (w *watcher) tellLost() {
	for name, reason := range map[string]string{
		filesVarLostEvents: "the ring of the files probe was full",
		filesVarLostPaths:  "files whose path has more than 511 bytes",
	} {
		var n uint64
		w.programs.Counter(name, &n)
		w.losses.Tell(w.Rows, "opened", reason, n)
	}
	w.losses.Tell(w.Rows, "opened", "files of processes whose fork was lost", w.orphans)
	w.losses.Tell(w.Rows, "opened", "files with a relative name that were not found: their process was gone or elsewhere, or they were removed", w.nameless)
	w.losses.Tell(w.Rows, "opened", "events of the files probe could not be decoded", w.bad)
}

func (w *watcher) cost() {
	var runs uint64
	w.programs.Counter(filesVarRuns, &runs)
	w.Rows.Append(w.programs.Cost("files", probe.ThreadCPU()-w.began, runs))
}

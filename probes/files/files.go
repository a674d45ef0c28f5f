// Package files says which data files each process of the run opens for reading,
// hooked or not, however short they are open. Looking is done by
// bpf/files.bpf.c.
package files

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// Probe is bpf/files.bpf.c.
var Probe = probe.Probe{
	Name:  "files",
	Doc:   "data files that each process of the run opens for reading; from the kernel",
	Tier:  probe.Kernel,
	Needs: needs,
	After: []string{"process"},
	Start: kernelSide.Start,
}

var kernelSide = probe.KernelSide{
	Probe: "files",
	Load:  loadFiles,
	Ring:  filesMapFiles,
	Pause: time.Second / 2, // BELL_NS of bpf/files.bpf.c
	Table: "opened",
	Drops: []probe.Drop{
		{Variable: filesVarLostEvents, Table: "opened", Reason: "the ring of the files probe was full"},
		{Variable: filesVarLostPaths, Table: "opened", Reason: "files whose path has more than 511 bytes"},
	},
	Open: open,
}

// watcher turns what processes open into rows.
type watcher struct {
	*probe.Recording
	programs *probe.Programs
	waiting  []opening           // of processes whose fork is still in the ring of the process probe
	procs    map[uint32]*process // by the ID of the kernel side
	nameless uint64              // files with a relative name that were not found
	refused  map[uint32]uint64   // calls that failed for want of a descriptor, as told, by the process' ID
	refusals uint64              // of all processes, as told
	sites    *probe.Sites
	lastSite uint32 // of their numbers
}

// firstSite is beyond the numbers that the other probes give their sites.
const firstSite = 1 << 31

// opening is an event and where its file is.
type opening struct {
	filesOpenEvent
	path string // "" not found yet
}

// process is what is known of one that has opened files.
type process struct {
	folder string // its working directory, when it was last asked for it; "" never
	files  []file // that were told
	sites  map[filesPyStack]uint32
}

// file is one that was told, and where its opens are counted.
type file struct {
	key  filesOpened
	path string
}

func open(r *probe.Recording, p *probe.Programs) probe.Handler {
	w := &watcher{Recording: r, programs: p, procs: map[uint32]*process{}, refused: map[uint32]uint64{},
		sites: &probe.Sites{Recording: r, Map: p.Maps[filesMapPythons]}}
	w.sites.Follow()
	r.SystemCalls = p.Maps[filesMapBeside]
	return probe.Handler{
		Take:   w.take,
		Look:   func(time.Time) (time.Time, error) { w.tell(); return time.Time{}, nil },
		Second: func(time.Time) { w.finish(false); w.tellNameless(); w.tellRefused() },
		Runs:   func() uint64 { return p.Counter(filesVarRuns, 0) },
		End:    w.end,
	}
}

func (w *watcher) end() error {
	w.tell()
	w.programs.Lost("opened", "files of processes whose fork was lost", uint64(len(w.waiting)))
	w.finish(true)
	w.tellNameless()
	w.tellMore()
	w.tellRefused()
	return nil
}

// take finds out what was opened, at once: the process may be asked for its
// folder. Of whom it is told may not be known yet.
func (w *watcher) take(raw []byte) bool {
	var e filesOpenEvent
	if n, err := binary.Decode(raw, binary.NativeEndian, &e); err != nil || n > len(raw) { // the ring rounds sizes up
		return false
	}
	w.waiting = append(w.waiting, opening{e, w.pathOf(&e)})
	return true
}

// tell writes the first open of each file whose process is known by now.
func (w *watcher) tell() {
	unknown := w.waiting[:0]
	for _, e := range w.waiting {
		r, ok := w.Tree.Of(e.Id)
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
		p := w.of(e.Id)
		w.Rows.Append(traces.Opened{Head: traces.Head{TsNS: int64(e.TsNs), Proc: w.Number(r)}, Path: e.path, Count: 1, Source: "kernel",
			Site: w.site(p, &e.Stack, r)})
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

// site is the number of what opened a file; 0: that is not known.
func (w *watcher) site(p *process, stack *filesPyStack, n probe.Node) uint32 {
	frames := probe.FramesOf(stack.Code[:], stack.Instruction[:])
	if len(frames) == 0 {
		return 0
	}
	number, known := p.sites[*stack]
	if !known {
		if p.sites == nil {
			p.sites = map[filesPyStack]uint32{}
		}
		number = firstSite + w.lastSite
		w.lastSite++
		p.sites[*stack] = number
		w.sites.TellStack(probe.Stack{Number: number, Frames: frames}, n)
		w.sites.Forget(number) // it is asked for here, once
	}
	return number
}

// ours reports whether a file is one of the hook's.
func (w *watcher) ours(path string) bool {
	return strings.HasPrefix(path, w.Spool+"/") || strings.HasPrefix(path, w.Hook+"/")
}

// finish writes how often the files of processes that have ended were opened, if
// more than once; at the end of the recording, of all.
func (w *watcher) finish(all bool) {
	opens := w.programs.Maps[filesMapOpens]
	for id, p := range w.procs {
		r, ok := w.Tree.Of(id)
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

func (w *watcher) tellNameless() {
	const reason = "files with a relative name that were not found: their process was gone or elsewhere, or they were removed"
	w.programs.Lost("opened", reason, w.nameless)
}

// tellRefused writes which processes were refused a descriptor, and how often.
func (w *watcher) tellRefused() {
	total := w.programs.Counter(filesVarRefusals, 0)
	if total == w.refusals {
		return
	}
	w.refusals = total
	var id uint32
	var n uint64
	for each := w.programs.Maps[filesMapRefused].Iterate(); each.Next(&id, &n); {
		node, ok := w.Tree.Of(id)
		if !ok || n == w.refused[id] {
			continue
		}
		w.refused[id] = n
		w.Rows.Append(traces.Descriptor{Head: traces.Head{TsNS: probe.Now(), Proc: w.Number(node)}, Refused: int64(n)})
	}
}

// tellMore writes how many opens there were beyond what is told of each process:
// a dataset may have a million files, of which the first ones say where it lies.
func (w *watcher) tellMore() {
	if n := w.programs.Counter(filesVarLostMore, 0); n > 0 {
		w.Rows.Append(traces.Opened{Head: traces.Head{TsNS: probe.Now()}, Count: n, Source: "kernel"})
	}
}

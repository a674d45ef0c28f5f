package recorder

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

// forecast looks at rows on their way to the trace, and says while the command
// runs that a loader's batches will not fit into /dev/shm: as soon as the first
// one is known, which is before they have filled it if the workers are not much
// faster than the disk, and else before its error can be read.
type forecast struct {
	rows interface{ Append(row any) }
	say  func(format string, args ...any)
	look func(pid int32) (procfs.Shm, error) // /dev/shm of a process

	mu      sync.Mutex
	pids    map[uint32]int32 // of processes that are workers, by their number
	parents map[int32]begun  // of workers, by their pid
	loaders map[object]*traces.Loader
	over    map[int32]bool             // workers that have ended, by their pid
	gone    map[uint32]bool            // processes that have
	rooms   map[int64][]traces.ShmRoom // by device
	waiting []traces.BatchBytes        // of workers whose start is not known yet
	batches map[object]batches
	warned  map[string]bool // by the line of the loader
}

type object struct{ proc, loader uint32 }

// begun is a worker that was started.
type begun struct {
	object
	tsNS int64
}

// batches that were seen of a loader.
type batches struct {
	n, bytes int64
	pid      int32 // of a worker
	begin    int64 // when the first of its workers was started
}

const (
	mostRooms = 64   // that are remembered of a device
	mostGone  = 1024 // workers and processes of which rows may still come
)

func newForecast(rows interface{ Append(row any) }, say func(string, ...any)) *forecast {
	return &forecast{rows: rows, say: say, look: procfs.ReadShm, pids: map[uint32]int32{}, parents: map[int32]begun{},
		loaders: map[object]*traces.Loader{}, over: map[int32]bool{}, gone: map[uint32]bool{},
		rooms: map[int64][]traces.ShmRoom{}, batches: map[object]batches{}, warned: map[string]bool{}}
}

// Append passes a row on.
func (f *forecast) Append(row any) {
	f.rows.Append(row)
	switch r := row.(type) {
	case *traces.Loader:
		f.with(func() { f.loaders[object{r.Proc, r.Loader}] = r })
	case *traces.Worker:
		f.with(func() { f.worker(r) })
	case *traces.BatchBytes:
		f.with(func() { f.waiting = append(f.waiting, *r) })
	case *traces.Pass:
		if r.Phase == "end" { // what its workers were ahead is gone
			f.with(func() { delete(f.batches, object{r.Proc, r.Loader}) })
		}
	case traces.Exit:
		f.with(func() { f.exited(r.Proc) })
	case traces.ShmRoom:
		f.with(func() {
			all := append(f.rooms[r.Device], r)
			f.rooms[r.Device] = all[max(0, len(all)-mostRooms):]
		})
	}
}

func (f *forecast) with(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	f.judge()
}

func (f *forecast) worker(r *traces.Worker) {
	switch r.Phase {
	case "begin":
		f.parents[r.Pid] = begun{object{r.Proc, r.Loader}, r.TsNS}
		delete(f.over, r.Pid)
	case "ready":
		f.pids[r.Proc] = r.Pid
	case "exit":
		f.over[r.Pid] = true
		f.forget()
	}
}

// exited makes what a process has told not count with that of later ones. It is not
// forgotten at once: rows come by process, and those of a worker of which a loop died
// may be read last.
func (f *forecast) exited(proc uint32) {
	f.gone[proc] = true
	maps.DeleteFunc(f.batches, func(o object, _ batches) bool { return o.proc == proc })
	f.forget()
}

// forget drops all that is over and gone, if that is much.
func (f *forecast) forget() {
	if len(f.over)+len(f.gone) <= mostGone {
		return
	}
	maps.DeleteFunc(f.loaders, func(o object, _ *traces.Loader) bool { return f.gone[o.proc] })
	maps.DeleteFunc(f.parents, func(pid int32, w begun) bool { return f.over[pid] || f.gone[w.proc] })
	maps.DeleteFunc(f.pids, func(proc uint32, _ int32) bool { return f.gone[proc] })
	clear(f.over)
	clear(f.gone)
}

// judge takes the batches whose loader is known.
func (f *forecast) judge() {
	f.waiting = slices.DeleteFunc(f.waiting, func(b traces.BatchBytes) bool {
		pid, ready := f.pids[b.Proc]
		from, known := f.parents[pid]
		if !ready || !known || f.loaders[from.object] == nil {
			return false
		}
		seen := f.batches[from.object]
		if seen.n == 0 {
			seen.begin = from.tsNS
		}
		seen.n, seen.bytes, seen.pid = seen.n+1, seen.bytes+b.New(), pid
		f.batches[from.object] = seen
		f.warn(f.loaders[from.object])
		return true
	})
	const most = 1024 // of workers of which nothing more is told
	f.waiting = f.waiting[max(0, len(f.waiting)-most):]
}

// warn says it, once for each line that makes loaders. Ranks on one machine share
// /dev/shm: those that are known by now count together.
func (f *forecast) warn(l *traces.Loader) {
	at := fmt.Sprintf("%s:%d", l.File, l.Line)
	if f.warned[at] {
		return
	}
	last := map[uint32]*traces.Loader{} // of each process
	for o, other := range f.loaders {
		if f.gone[o.proc] && o.proc != l.Proc || f.batches[o].n == 0 {
			continue
		}
		if other.File == l.File && other.Line == l.Line && (last[o.proc] == nil || last[o.proc].Loader < o.loader) {
			last[o.proc] = other
		}
	}
	var need, inFlight, bytes int64
	for proc, other := range last {
		b := f.batches[object{proc, other.Loader}]
		need += other.MostInFlight() * (b.bytes / b.n)
		inFlight += other.MostInFlight()
		bytes = max(bytes, b.bytes/b.n)
	}
	b := f.batches[object{l.Proc, l.Loader}]
	shm, ok := f.shmOf(b.pid)
	if !ok || !shm.Tmpfs || need == 0 {
		return
	}
	free := f.freeAt(shm, b.begin)
	if need <= free {
		return
	}
	f.warned[at] = true
	f.say("%s:%d: this loader does not fit into /dev/shm: up to %d batches of %s at once take %s, %s of %s were free. "+
		"A worker dies of it as soon as its loop falls behind (\"Bus error\", \"No space left on device\"). %s",
		filepath.Base(l.File), l.Line, inFlight, megabytes(bytes), megabytes(need), megabytes(free), megabytes(shm.Capacity),
		wayOutOfShm(l, bytes, need, free, shm, len(last)))
}

// shmOf is the /dev/shm of a worker. One that has died already may have died of it:
// then the one that was seen last, if there is but one.
func (f *forecast) shmOf(pid int32) (procfs.Shm, bool) {
	if shm, err := f.look(pid); err == nil {
		return shm, true
	}
	for _, all := range f.rooms {
		last := all[len(all)-1]
		shm := procfs.Shm{Device: last.Device, Tmpfs: last.Type == "tmpfs", Capacity: last.Capacity, Free: last.Free, Nodes: last.Nodes}
		return shm, len(f.rooms) == 1
	}
	return procfs.Shm{}, false
}

// freeAt is what was free when the workers were started: what is now may have
// batches of theirs in it already.
func (f *forecast) freeAt(shm procfs.Shm, begin int64) int64 {
	free := shm.Free
	for i, r := range f.rooms[shm.Device] {
		if r.Capacity == shm.Capacity && (i == 0 || r.TsNS <= begin) {
			free = r.Free
		}
	}
	return max(free, shm.Free)
}

// wayOutOfShm is what fits, and which size would.
func wayOutOfShm(l *traces.Loader, bytes, need, free int64, shm procfs.Shm, ranks int) string {
	larger := fmt.Sprintf("docker run --shm-size=%dm does", traces.ShmSize(need+shm.Capacity-free))
	room := int64(float64(free) * (1 - traces.ShmMargin) / float64(bytes) / float64(ranks))
	if workers, prefetch, ok := l.FewerInFlight(room); ok {
		return fmt.Sprintf("num_workers=%d, prefetch_factor=%d fits; %s.", workers, prefetch, larger)
	}
	return fmt.Sprintf("Not even one worker fits; %s.", larger)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

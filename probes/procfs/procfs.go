// Package procfs follows the processes of the run in /proc: which there are,
// their memory, and that they are gone. It needs no privilege and sees what was
// not hooked, too.
package procfs

import (
	"context"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// Probe is /proc.
var Probe = probe.Probe{
	Name:  "procfs",
	Doc:   "the processes of the run, their memory and CPU time, from /proc",
	Tier:  probe.Hook,
	Needs: needs,
	Start: start,
}

const (
	firstPause = 100 * time.Millisecond // between two rounds, while processes are being started
	slowPause  = time.Second            // once the run is older than startTime
	startTime  = 5 * time.Second

	// What the sampler may cost, as a share of one core: reading smaps_rollup
	// walks the page tables of a process (0.14 ms for 10 MB, 2.3 ms for 250 MB)
	// and holds its mmap lock meanwhile.
	share = 0.003
	// head start: a short run is looked at often, whatever it costs.
	credit = 20 * time.Millisecond
)

func start(r *probe.Recording) (probe.Watch, error) {
	w := &watcher{Recording: r, procs: map[int32]*process{}, strangers: map[int32]uint64{}, began: time.Now(), self: link(int32(os.Getpid()), "exe")}
	if p := w.adopt(r.Target); p != nil {
		w.oldest = p.start
	}
	return w.watch, nil
}

func (w *watcher) watch(ctx context.Context) error {
	// The thread's CPU time is what the sampler costs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadCPU()
	for ctx.Err() == nil {
		w.round(time.Now())
		spent := threadCPU() - before - credit
		affordable := time.Duration(float64(spent)/share) - time.Since(w.began)
		select {
		case <-ctx.Done():
		case <-time.After(max(w.pause(), affordable)):
		}
	}
	w.scan(time.Now())
	w.finish()
	return nil
}

func (w *watcher) pause() time.Duration {
	if time.Since(w.began) < startTime {
		return firstPause
	}
	return slowPause
}

func threadCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// round looks once at everything that is due.
func (w *watcher) round(now time.Time) {
	w.scan(now)
	for _, p := range w.procs {
		w.tend(p, now)
	}
}

// tend looks at one process: is it still there, what is it, how large.
func (w *watcher) tend(p *process, now time.Time) {
	if !p.gone.IsZero() {
		// Its parent may tell the exit code a little later.
		if now.Sub(p.gone) > remember {
			w.Procs.Forget(p.pid, p.start)
			delete(w.procs, p.pid)
		}
		return
	}
	st, err := probe.ReadStat(p.pid)
	if err != nil || st.StartTicks != p.start || st.Gone() {
		p.gone = now
		w.Procs.Exit(w.Rows, p.pid, p.start, traces.Exit{Head: traces.Head{TsNS: probe.Now()}, Code: -1, Source: "gone"})
		return
	}
	w.identify(p, st, now)
	w.sample(p, st, now)
}

// finish writes the last sample of those that are still there.
func (w *watcher) finish() {
	now := time.Now()
	for _, p := range w.procs {
		p.nextSample = now
		w.tend(p, now)
	}
}

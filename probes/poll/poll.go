// Package poll looks at the processes of the run in /proc, again and again: which
// there are, their memory, and that they are gone. It needs no privilege and sees
// what was not hooked, too.
package poll

import (
	"os"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

// Probe is /proc.
var Probe = probe.Probe{
	Name:  "poll",
	Doc:   "the processes of the run, their memory and CPU time, from /proc",
	Tier:  probe.Hook,
	Needs: needs,
	Start: start,
}

const (
	firstPause = 100 * time.Millisecond // between two rounds, while processes are being started
	slowPause  = time.Second            // once the run is older than startTime
	startTime  = 5 * time.Second
	latePause  = 2 * time.Second // and than lateTime
	lateTime   = 30 * time.Second

	longest = 3 * time.Second // between two rounds that cost next to nothing

	// Programs that are looked at between two rounds, whether they have become others.
	maxLinks = 16

	// What the rounds may cost, as a share of one core.
	roundShare = 0.001
	// head start: a short run is looked at often, whatever it costs.
	credit = 20 * time.Millisecond

	patience = 200 * time.Millisecond // at the end
)

func start(r *probe.Recording) (probe.Watch, error) {
	w := newWatcher(r)
	if p := w.adopt(r.Target); p != nil {
		w.oldest = p.start
	}
	w.limits, w.cpu = newLimits(r.Target), newProcessors(r.Target)
	w.look(w.began, true)
	w.lookCPU(w.began, true)
	w.tellShmFiles("begin")
	w.lookShm(true)
	return probe.Watch{Look: w.turn, End: func(probe.Turn) error { w.finish(); return nil }}, nil
}

func newWatcher(r *probe.Recording) *watcher {
	return &watcher{Recording: r, procs: map[int32]*process{}, strangers: map[int32]uint64{}, began: time.Now(),
		self: procfs.Link(int32(os.Getpid()), "exe"), limits: noLimits(), shm: noShm(), schedstat: procfs.Schedstat}
}

// turn looks at what is due.
func (w *watcher) turn(t probe.Turn) (next time.Time, err error) {
	now := t.Until
	switch {
	case t.Ending:
		if !w.ending {
			w.ending = true
			w.scan(now)
		}
		return now.Add(longest), nil
	case now.Before(w.next):
		w.news(now)
	default:
		before := probe.ThreadCPU()
		w.round(now)
		spent := t.Spent + probe.ThreadCPU() - before - w.measured - credit
		affordable := w.began.Add(time.Duration(float64(spent) / roundShare))
		if w.next = now.Add(w.pause()); w.next.Before(affordable) {
			w.next = affordable
		}
		// What is new is found by its parent only while both are there: so long
		// at most, or so long that a round is a thirtieth of the time.
		if latest := now.Add(max(longest, 30*time.Since(t.Now))); latest.Before(w.next) {
			w.next = latest
		}
	}
	w.measure(now)
	w.sample(now)
	w.inheritance(now)
	w.count(now)
	w.look(now, false)
	w.lookCPU(now, false)
	w.lookShm(false)
	w.spool.look(w.Recording, now)
	return w.due(), nil
}

// due is when something has to be looked at again.
func (w *watcher) due() time.Time {
	due := w.next
	for _, p := range w.procs {
		if w.unsure(p) && p.nextJudge.Before(due) {
			due = p.nextJudge
		}
		if p.fds.fast && p.gone.IsZero() && p.fds.next.Before(due) {
			due = p.fds.next
		}
	}
	return due
}

// unsure reports whether a process is a Python of which it is to be found out
// yet whether it has the hook.
func (w *watcher) unsure(p *process) bool { return p.python && !p.judged && p.gone.IsZero() }

func (w *watcher) pause() time.Duration {
	switch age := time.Since(w.began); {
	case age < startTime:
		return firstPause
	case age < lateTime:
		return slowPause
	}
	return latePause
}

// round looks once at everything that is due.
func (w *watcher) round(now time.Time) {
	w.scan(now)
	for _, p := range w.procs {
		w.tend(p, now)
	}
}

// news looks at the processes that another probe has seen begin or end since
// the last look.
func (w *watcher) news(now time.Time) {
	links := maxLinks
	for _, p := range w.procs {
		switch {
		case !p.gone.IsZero():
		case w.unsure(p) && !now.Before(p.nextJudge):
			w.tend(p, now) // it may end before the next round
		case !p.python && now.Sub(p.seen) < startTime && links > 0:
			// env, nice or a script's exec may have become a Python.
			links--
			if exe := procfs.Link(p.pid, "exe"); exe != p.exe && exe != "" {
				w.tend(p, now)
			}
		}
	}
	for _, known := range w.Procs.Alive() {
		p := w.procs[known.Pid]
		switch {
		case known.Start == 0:
		case p == nil || p.start != known.Start:
			if !known.Exited {
				if p = w.adopt(known.Pid); p != nil {
					w.tend(p, now)
				}
			}
		case known.Exited && p.gone.IsZero():
			w.tend(p, now)
		}
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
	st, err := procfs.ReadStat(p.pid)
	if err != nil || st.StartTicks != p.start || st.Gone() {
		p.gone = now
		w.judgeEnded(p)
		w.parted(p)
		w.endedCPU += p.last.CPU
		w.ended(now)
		w.Procs.Exit(w.Rows, p.pid, p.start, traces.Exit{Head: traces.Head{TsNS: probe.Now()}, ExitCode: -1, Source: "gone"})
		return
	}
	p.last, p.looked = st, now
	w.identify(p, st, now)
}

// finish writes the last sample of those that are still there, as far as it
// does not keep the user waiting, and the last figures of the limits.
func (w *watcher) finish() {
	now := time.Now()
	for _, p := range w.procs {
		if w.tend(p, now); p.gone.IsZero() && time.Since(now) < patience {
			w.roll(p, now)
		}
		w.parted(p)
	}
	w.look(now, true)
	w.lookCPU(now, true)
	w.lookShm(true)
	w.tellShmFiles("end")
}

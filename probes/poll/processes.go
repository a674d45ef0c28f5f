package poll

import (
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

// remember is how long an ended process keeps its number for what others tell
// about it.
const remember = 30 * time.Second

// mostTried is how many numbers are tried one by one before all processes are
// listed.
const mostTried = 100

type watcher struct {
	*probe.Recording
	procs     map[int32]*process
	strangers map[int32]uint64 // pid and start of processes that are not of the run
	began     time.Time
	next      time.Time // of round
	lastPid   int32     // that the kernel had given at the last scan; 0: it was never asked
	nextList  time.Time // of all processes
	ending    bool      // the target has ended
	oldest    uint64    // start of the target: nothing older is of the run
	self      string    // the recorder's program, which the target is until it calls exec

	limits limits
	cpu    processors
	shm    shm
	spool  spool

	inherited inherited

	schedstat func(pid int32) (ran, waited int64, err error) // procfs.Schedstat

	measured time.Duration // CPU time that reading smaps_rollup has cost
	endedCPU time.Duration // of processes of the run that have ended
}

// process is one process of the run.
type process struct {
	pid   int32
	start uint64
	seen  time.Time
	gone  time.Time // zero: it is there

	exe        string
	python     bool
	nameless   bool // it had no command line yet when it was introduced
	judged     bool // nothing more is to be found out about the hook in it
	nextJudge  time.Time
	judgements int
	torch      int       // judgements at which it had loaded torch and got processors since the last one, and had no ring
	withTorch  time.Time // the last judgement at which it had torch
	delayed    int64     // nanoseconds for which it had waited for a processor until then
	why        string    // the hook could not load; "" as far as is known it could

	listed bool    // what it has inherited was looked at
	shares []share // of it, what it shares with its parent
	fds    descriptors

	memory
}

// adopt takes a process into the run.
func (w *watcher) adopt(pid int32) *process {
	st, err := procfs.ReadStat(pid)
	if err != nil || st.Gone() {
		return nil
	}
	w.Procs.Of(pid, st.StartTicks)
	p := &process{pid: pid, start: st.StartTicks, seen: time.Now()}
	w.procs[pid] = p
	w.shm.lives(pid)
	delete(w.strangers, pid)
	return p
}

// scan finds the processes that are new in the run: children of those that are
// known, those that the hook has told of, and those whose environment has our
// hook in it, whose parents may have ended unseen.
//
// We are no child subreaper, which would find them all: orphans of the run
// would then become our children instead of init's, and programs can tell.
func (w *watcher) scan(now time.Time) {
	for _, known := range w.Procs.Alive() {
		if known.Start == 0 || known.Exited {
			continue
		}
		if p := w.procs[known.Pid]; p == nil || p.start != known.Start {
			w.adopt(known.Pid)
		}
	}
	fresh := w.unknown(now)
	for more := true; more; { // a child can be listed before its parent
		more = false
		for pid, st := range fresh {
			if w.isOurs(pid, st) {
				w.adopt(pid)
				delete(fresh, pid)
				more = true
			}
		}
	}
	for pid, st := range fresh {
		w.strangers[pid] = st.StartTicks
	}
}

// isOurs reports whether a process is of the run.
func (w *watcher) isOurs(pid int32, st procfs.Stat) bool {
	parent := w.procs[st.Ppid]
	return parent != nil && parent.start <= st.StartTicks || st.StartTicks >= w.oldest && w.carriesHook(pid)
}

// unknown gives the processes that were not there at the last scan. Listing them
// all takes a millisecond: where few numbers were given since, these are tried.
func (w *watcher) unknown(now time.Time) map[int32]procfs.Stat {
	last, ok := procfs.LastPid()
	before := w.lastPid
	w.lastPid = last
	if few := last - before; !ok || before == 0 || few < 0 || few > mostTried || !now.Before(w.nextList) {
		w.nextList = now.Add(longest)
		return w.listed()
	}
	return w.given(before, last)
}

// given is unknown, by the numbers that were given after one and up to another.
func (w *watcher) given(before, last int32) map[int32]procfs.Stat {
	fresh := map[int32]procfs.Stat{}
	for pid := before + 1; pid <= last; pid++ {
		delete(w.strangers, pid) // which had this number before
		w.meet(pid, fresh)
		if _, there := fresh[pid]; there && !procfs.IsProcess(pid) {
			delete(fresh, pid)
		}
	}
	return fresh
}

// listed is unknown, by all that there are.
func (w *watcher) listed() map[int32]procfs.Stat {
	fresh := map[int32]procfs.Stat{}
	here := map[int32]bool{}
	for _, pid := range procfs.Pids() {
		here[pid] = true
		if _, ok := w.strangers[pid]; !ok {
			w.meet(pid, fresh)
		}
	}
	for pid := range w.strangers {
		if !here[pid] { // its number is free for one of ours
			delete(w.strangers, pid)
		}
	}
	return fresh
}

// meet adds a process to those that are fresh, unless it is known or has ended.
func (w *watcher) meet(pid int32, fresh map[int32]procfs.Stat) {
	if p := w.procs[pid]; p != nil && p.gone.IsZero() {
		return
	}
	if st, err := procfs.ReadStat(pid); err == nil && !st.Gone() {
		fresh[pid] = st
	}
}

// carriesHook reports whether the environment that pid was started with has our
// hook on PYTHONPATH. The recorder's own helpers have not.
func (w *watcher) carriesHook(pid int32) bool {
	env, err := procfs.Environ(pid)
	return err == nil && probe.Carries(env, w.Hook)
}

// row begins a row about the process as it is now.
func (w *watcher) row(p *process, st procfs.Stat) traces.Process {
	proc, _ := w.Procs.Of(p.pid, p.start)
	return traces.Process{
		Head: traces.Head{TsNS: probe.Now(), Proc: proc.Number},
		Pid:  p.pid, Ppid: st.Ppid, StartTicks: p.start,
		Rank: -1, LocalRank: -1,
	}
}

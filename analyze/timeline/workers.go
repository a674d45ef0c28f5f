package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/dptrace/dptrace/traces"
)

// WorkerProcess is one worker process of a loader, from its start to its end. Persistent
// workers serve several passes.
type WorkerProcess struct {
	Loader  *Loader
	Number  int // -1 unknown
	Pid     int32
	Object  uint32             // Loader.Loader as recorded
	Process *Process           // nil: never heard of. It may be unknown to the hook, unlike Worker.Process
	Begin   *traces.Worker     // nil: its row is lost, or it ended before it was written
	Exit    *traces.Worker     // nil: its parent did not tell
	Workers []*WorkerPass      // its share of each pass, in their order
	Named   []WorkerDeathError // errors in its parent that name it
}

// joinExits gives the workers' ends to those who have ended, once their begins
// are known.
func joinExits(p *Process, pr *procRows) {
	slices.SortStableFunc(pr.exits, func(a, b traces.Worker) int { return cmp.Compare(a.TsNS, b.TsNS) })
	for i := range pr.exits {
		exit := &pr.exits[i]
		var best *WorkerProcess
		for _, l := range p.Loaders {
			for _, wp := range l.WorkerProcesses {
				if wp.ends(exit) && (best == nil || wp.Begin.TsNS > best.Begin.TsNS) {
					best = wp
				}
			}
		}
		if best == nil {
			if l := p.loaderOf(exit.Loader); l != nil {
				wp := &WorkerProcess{Loader: l, Number: int(exit.Worker), Pid: exit.Pid, Object: exit.Loader, Exit: exit}
				l.WorkerProcesses = append(l.WorkerProcesses, wp)
			}
			continue
		}
		best.Exit = exit
	}
}

func (wp *WorkerProcess) ends(exit *traces.Worker) bool {
	return wp.Exit == nil && wp.Begin != nil && wp.Object == exit.Loader && wp.Number == int(exit.Worker) &&
		wp.Begin.Pass <= exit.Pass && wp.Begin.TsNS <= exit.TsNS &&
		(wp.Pid == exit.Pid || wp.Pid == 0 || exit.Pid == 0)
}

func (p *Process) loaderOf(object uint32) *Loader {
	for _, l := range p.Loaders {
		for i := range l.Objects {
			if l.Objects[i].Loader == object {
				return l
			}
		}
	}
	return nil
}

// joinUnready finds the processes of workers that the hook never heard of: in
// the kernel tier they are there all the same.
func joinUnready(here []*Process) {
	taken := map[*Process]bool{}
	for _, p := range here {
		for _, l := range p.Loaders {
			for _, wp := range l.WorkerProcesses {
				if wp.Process != nil {
					taken[wp.Process] = true
				}
			}
		}
	}
	for _, p := range here {
		for _, l := range p.Loaders {
			for _, wp := range l.WorkerProcesses {
				if wp.Process == nil && wp.Pid > 0 && wp.Pid != p.Pid {
					if wp.Process = wp.find(here, taken); wp.Process != nil {
						taken[wp.Process] = true
					}
				}
			}
		}
	}
}

// soon is how far from its begin row a worker may have been noticed.
const soon = int64(30 * time.Second)

func (wp *WorkerProcess) find(here []*Process, taken map[*Process]bool) *Process {
	var at int64
	switch {
	case wp.Begin != nil:
		at = wp.Begin.TsNS
	case len(wp.Named) > 0:
		at = wp.Named[0].TsNS
	default:
		at = wp.Exit.TsNS
	}
	var best *Process
	var bestGap int64
	for _, p := range here {
		if p.Pid != wp.Pid || taken[p] || p.Next != nil {
			continue
		}
		gap := p.Begin - at
		if gap < 0 {
			gap = -gap
		}
		if wp.Begin == nil && p.Begin <= at { // it is told about when it has ended: it may have begun long ago
			gap = 0
		}
		if gap < soon && (best == nil || gap < bestGap) {
			best, bestGap = p, gap
		}
	}
	return best
}

// Death is how a worker ended.
type Death struct {
	Code, Signal int32 // of a signal that nobody gave the number of, Signal is -1
	By           string
	TsNS         int64 // not later than; 0 unknown
	Exact        bool  // it is the time of the end itself
}

// serverGone is the exit code that multiprocessing makes up when its fork server
// has ended: whether the worker has, nobody knows.
const serverGone = 255

// ByServer reports whether the worker is a child of multiprocessing's fork server.
// Then torch's own look at its workers says nothing, and what multiprocessing
// says depends on the server.
func (wp *WorkerProcess) ByServer() bool {
	return wp.Loader.object(wp.Object).StartMethod == "forkserver"
}

// Died says how a worker ended; ok is false if nobody knows. The kernel knows
// best, then the parent, then torch's error, which tells what waitid said.
func (wp *WorkerProcess) Died() (d Death, ok bool) {
	if p := wp.Process; p != nil && p.EndKnown() && (p.Exit.Source != "exitcode" || wp.Exit == nil) {
		return Death{p.Exit.ExitCode, p.Exit.Signal, p.Exit.Source, p.Exit.TsNS, Exact(p.Exit)}, true
	}
	if e := wp.Exit; e != nil && !(wp.ByServer() && e.ExitCode == serverGone) {
		d = Death{Code: e.ExitCode, By: "exitcode", TsNS: e.TsNS}
		if e.ExitCode < 0 {
			d.Code, d.Signal = -1, -e.ExitCode
		}
		return d, true
	}
	for _, c := range wp.Named {
		if c.Signal != 0 || c.Code >= 0 {
			return Death{Code: c.Code, Signal: c.Signal, By: "exception", TsNS: c.TsNS}, true
		}
	}
	return Death{}, false
}

// At is the worker's share of the pass in which something happened at a time:
// the last one that had begun; nil if none had.
func (wp *WorkerProcess) At(ns int64) *WorkerPass {
	var last *WorkerPass
	for _, w := range wp.Workers {
		if w.Pass.Begin <= ns {
			last = w
		}
	}
	return last
}

// Last is its share of the last pass that it served; nil unknown.
func (wp *WorkerProcess) Last() *WorkerPass {
	if len(wp.Workers) == 0 {
		return nil
	}
	return wp.Workers[len(wp.Workers)-1]
}

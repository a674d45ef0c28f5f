// Package timeline is the model that rules think in: run, host, process,
// loader, pass, worker. It joins the rows of a trace that belong together:
// the passes of one loader, the workers of a pass with their own processes,
// the ranks of one training. DESIGN.md and RULES.md define the words.
package timeline

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// Timeline is one run.
type Timeline struct {
	Processes []*Process
	Loaders   []*Loader // those that were iterated, by ID, then rank
	Command   []string  // what was recorded
	ExitCode  int       // of it; -1 unknown
	Begin     int64     // nanoseconds of the monotonic clock; with several hosts of the first part's
	End       int64

	processes map[*traces.Part]map[uint32]*Process // by their numbers
	problems  []traces.Problem
	lost      map[*traces.Part][]traces.Lost
	limits    map[*traces.Part]map[limitKey]*limitRows
	codes     map[*traces.Part]int // of the commands; -1 unknown
	tiers     map[*traces.Part]string
	workers   map[workerKey]*WorkerPass
}

// Process is one process of the run.
type Process struct {
	Part *traces.Part
	traces.Process
	Exit    *traces.Exit // the surest row; nil unknown
	Loaders []*Loader
	Stepped bool          // an optimizer was seen stepping in it
	Groups  []traces.Dist // what it was seen to do in torch.distributed
	Peers   *Group        // the ranks whose gradients are reduced together with this process's; nil: none were seen
	Begin   int64         // nanoseconds of its host's monotonic clock
	End     int64
	Parent  *Process // nil: unknown, or not of the run
	Next    *Process // what it became by calling exec, if that has a number of its own
	// Signals, and what was raised: the first and the last few rows.
	Signals    []traces.Signal
	Raised     []traces.Exception
	Acts       []traces.Act  // what it did to others
	Told       []traces.Act  // what its parent learned of its end
	Oom        *traces.Oom   // the out-of-memory killer has chosen it
	Memory     traces.Memory // its last row
	Steps      uint64        // optimizer steps, as of the last next()
	Optimizers int           // that were seen stepping
	// LostRecords is how many records of this process were dropped, by source.
	LostRecords map[string]uint64

	reduces map[*Group]bool // the groups that it reduces gradients in
	apart   []*Group        // its groups, made by the program, whose ranks may be parts of one replica
	smaller []*Group        // and those that are so unless gradients are reduced in them
}

// Hooked reports whether the process was watched from inside.
func (p *Process) Hooked() bool { return p != nil && p.Hook != "off" && p.Hook != "none" }

// Loader is one DataLoader as its program knows it: objects that are made anew
// at the same place, one after another, to hand out the same dataset in the same
// way, are one loader.
type Loader struct {
	ID              int // from 1; the same loader on several ranks has one
	Process         *Process
	Objects         []traces.Loader
	Passes          []*Pass
	Role            Role
	WorkerProcesses []*WorkerProcess // its worker processes, in the order of their starts
	Lost            bool             // the row that says how it was made: what Objects has is no more than a guess

	made  *object            // the first of Objects
	given map[uint32]*object // the last of them that hands out each dataset
	until int                // the last object of the process that hands out one of those
}

// Rank of the loader's process; -1 unknown.
func (l *Loader) Rank() int { return int(l.Process.Rank) }

// First is the loader's first object. Most of its facts are those of all.
func (l *Loader) First() *traces.Loader { return &l.Objects[0] }

// At is where the loader is made, file:line, relative to the working directory.
func (l *Loader) At() string {
	return Place(l.Process.Cwd, l.First().File, l.First().Line)
}

// Place is file:line with the file relative to the working directory, if it
// lies in it, and without detours: a/../b.py is b.py.
func Place(cwd, file string, line int32) string {
	if file == "" {
		return "unknown place"
	}
	if cwd != "" && filepath.IsAbs(file) {
		if rel, err := filepath.Rel(cwd, file); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			file = rel
		}
	}
	file = filepath.Clean(file)
	if line <= 0 {
		return file
	}
	return file + ":" + strconv.Itoa(int(line))
}

// Role is what a loader or a pass is for.
type Role string

// What is said of them is of passes that are watched. Of others a pass trains if
// an optimizer stepped between two deliveries, and evaluates if gradients were
// off at next(), or if it has no step while another loader of the process has.
const (
	Train   Role = "train"   // steps train on its deliveries
	Eval    Role = "eval"    // its deliveries are used with grad mode off or in evaluation mode, and no step trains on them
	Unknown Role = "unknown" // neither
)

// Pass is one iteration of a loader.
type Pass struct {
	Loader     *Loader
	Number     int    // in its loader, from 0
	Object     uint32 // Loader.Loader and Pass.Pass as recorded
	Recorded   uint32
	Began      *traces.Pass // its rows; nil: lost, or it was never ended
	Ended      *traces.Pass
	Role       Role
	Delivered  int
	Exhausted  bool   // all that there was has been delivered
	How        string // it ended: exhausted, dropped, error; "" not known
	WentOn     bool   // after an error of the loader: the program passed over it
	Open       int64  // the last time at which the loop is known to have been in it, before torch ended its workers
	Abandoned  bool   // ended early: not compared with other passes
	Blind      bool   // rows that tell the role and the samples are lost: what they would excuse cannot be excluded
	BaseSeed   int64
	Seeded     bool // BaseSeed is known
	Begin      int64
	End        int64         // of the pass, or the last sign of it
	Optimizers []uint32      // that stepped in it
	Workers    []*WorkerPass // of a loader without workers: the main process, number -1

	stats *nextStats
	uses  *uses // nil: not watched
}

// WorkerPass is the share of one worker in one pass.
type WorkerPass struct {
	Pass    *Pass
	Number  int      // -1: the main process
	Process *Process // nil: never heard of, or without hook
	Windows int      // fetches seen

	given  []Given
	handed int64 // the last batch that it handed over; -1 none is known
}

// ExitCodeOf is the exit code of the command that a part is the recording of; -1 unknown.
func (t *Timeline) ExitCodeOf(part *traces.Part) int { return t.codes[part] }

// Kernel reports whether a part was recorded in the kernel tier: then the ends of
// all processes are known.
func (t *Timeline) Kernel(part *traces.Part) bool { return t.tiers[part] == "kernel" }

// SameTraining reports whether two passes belong to one training: they share an
// optimizer, and nothing was loaded into it or its model between them; or none
// ever stepped in their process.
func (p *Pass) SameTraining(q *Pass) bool {
	if !p.Loader.Process.Stepped && !q.Loader.Process.Stepped {
		return true
	}
	if a, b := p.uses, q.uses; a != nil && b != nil && p != q {
		if q.Begin < p.Begin {
			a, b = b, a
		}
		if a.last != b.first {
			return false
		}
	}
	for _, a := range p.Optimizers {
		for _, b := range q.Optimizers {
			if a == b {
				return true
			}
		}
	}
	return false
}

// Iterable reports whether the loader's dataset is an IterableDataset.
func (l *Loader) Iterable() bool { return l.First().Iterable }

// Worker finds whose fetch a row of batch_fetch or rng_state belongs to; nil
// if nobody's, or if the row that would tell is lost.
func (t *Timeline) Worker(part *traces.Part, proc, loader, pass uint32, worker int32) *WorkerPass {
	return t.workers[workerKey{part, proc, loader, pass, worker}]
}

type workerKey struct {
	part         *traces.Part
	proc         uint32
	loader, pass uint32
	worker       int32
}

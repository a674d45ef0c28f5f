package swallowedcrash

import (
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/ends"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// run is one recording: a command and the processes below it.
type run struct {
	*detect.Case
	part     *traces.Part
	code     int // of the command; -1 unknown
	target   *timeline.Process
	torch    []*timeline.Process // below the command, no workers of loaders or pools
	crashes  []*crashed
	unknown  int // of torch: nobody knows how they ended
	unhooked int // Pythons that ended badly and of which nobody knows whether they used torch
}

func look(c *detect.Case, part *traces.Part) *run {
	r := &run{Case: c, part: part, code: c.ExitCodeOf(part)}
	r.sort(detect.Of(c, ends.Source))
	if r.code != 0 {
		return r
	}
	for _, p := range r.torch {
		if c := r.verdict(p); c != nil {
			r.crashes = append(r.crashes, c)
		}
	}
	// Who ended badly because a child of it did is one crash with it: the
	// uppermost says most about who hid it.
	r.crashes = slices.DeleteFunc(r.crashes, func(c *crashed) bool {
		return slices.ContainsFunc(r.crashes, func(above *crashed) bool {
			return above != c && c.Under(above.Process) && above.certainty >= c.certainty
		})
	})
	return r
}

// importTime is shorter than any import of torch (half a second and more): who
// lived no longer did not use it.
const importTime = int64(200 * time.Millisecond)

// sort finds the command, and who below it used torch.
func (r *run) sort(known *ends.Ends) {
	var all []*timeline.Process
	for _, p := range r.Processes {
		if p.Part != r.part || p.Next != nil {
			continue
		}
		all = append(all, p)
		if p.Kind == "target" || p.Proc == 1 && r.target == nil { // the recorder numbers it first
			r.target = p
		}
	}
	for _, p := range all {
		switch {
		case p == r.target || known.IsWorker(p) || p.Kind == "worker" || p.Kind == "task" || torchsOwn(p):
		case usesTorch(p):
			r.torch = append(r.torch, p)
		case p.Hook == "off" && p.EndedBadly() && p.Exit.TsNS-p.Begin > importTime:
			r.unhooked++
		}
	}
}

// usesTorch reports whether a process imported torch, by its hook or by what it
// has mapped. A fork that called exec is no longer what its hook told of.
func usesTorch(p *timeline.Process) bool {
	if p.Torch == "" {
		return strings.Contains(p.Note, "torch is loaded")
	}
	if p.Exe != "" && !strings.Contains(p.Exe, "python") && !strings.Contains(p.Exe, "pypy") {
		return false
	}
	return p.Kind != "fork" || p.Parent == nil || p.Cmdline == p.Parent.Cmdline || p.Cmdline == "" || spawned(p)
}

// spawned reports whether multiprocessing started a process in an interpreter of
// its own.
func spawned(p *timeline.Process) bool {
	return strings.Contains(p.Cmdline, "--multiprocessing-fork") || strings.Contains(p.Cmdline, "multiprocessing.spawn")
}

// torchsOwn reports whether a process is a helper of torch or multiprocessing:
// they end as they please when their parent has.
func torchsOwn(p *timeline.Process) bool {
	return slices.ContainsFunc(helpers, func(name string) bool { return strings.Contains(p.Cmdline, name) })
}

var helpers = []string{
	"torch/_inductor/compile_worker", "multiprocessing.resource_tracker", "multiprocessing.forkserver", "torch_shm_manager",
}

// Package crash is the rule swallowed-crash: a process that used torch crashed,
// and the recorded command ended with 0. docs/rules/swallowed-crash.md explains
// it.
package crash

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule. It is about a run, not about a loader of it: its findings
// and its check are of loader 0.
var Rule = detect.Rule{
	ID:      id,
	Title:   "A training process crashed and the command exited with 0",
	Run:     true,
	Sources: []collect.Any{timeline.Source},
	Judge:   detect.Adapt(judge),
}

const id = "swallowed-crash"

// importTime is shorter than any import of torch (half a second and more): who
// lived no longer did not use it.
const importTime = int64(200 * time.Millisecond)

// tables are those whose gaps may hide a crash.
var tables = []string{"process", "exit", "exception", "signal"}

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	var parts []*traces.Part
	for _, p := range t.Processes {
		if !slices.Contains(parts, p.Part) {
			parts = append(parts, p.Part)
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	var said []finding.Check
	for _, part := range parts {
		r := look(t, part)
		findings = append(findings, r.findings()...)
		if len(r.torch) > 0 || r.unhooked > 0 { // else the command itself is the training, and its exit code is its own
			said = append(said, r.check())
		}
	}
	for _, status := range []finding.Status{finding.Found, finding.CannotTell, finding.Clean} {
		for _, c := range said {
			if c.Status == status {
				return findings, []finding.Check{c}
			}
		}
	}
	return findings, nil
}

// run is one recording: a command and the processes below it.
type run struct {
	t        *timeline.Timeline
	part     *traces.Part
	code     int // of the command; -1 unknown
	target   *timeline.Process
	torch    []*timeline.Process // below the command, no workers of loaders or pools
	crashes  []*crashed
	unknown  int // of torch: nobody knows how they ended
	unhooked int // Pythons that ended badly and of which nobody knows whether they used torch
}

// crashed is one process that ended badly.
type crashed struct {
	*timeline.Process
	certainty finding.Certainty
	raised    *traces.Exception // that nobody caught; nil: not known
	again     *timeline.Process // the same command, run later, that ended well
	orphan    bool
}

func look(t *timeline.Timeline, part *traces.Part) *run {
	r := &run{t: t, part: part, code: t.ExitCodeOf(part)}
	workers := map[*timeline.Process]bool{}
	for _, l := range t.Loaders {
		for _, life := range l.Lives {
			if life.Process != nil {
				workers[life.Process] = true
			}
		}
	}
	var all []*timeline.Process
	for _, p := range t.Processes {
		if p.Part != part || p.Next != nil {
			continue
		}
		all = append(all, p)
		if p.Kind == "target" || p.Proc == 1 && r.target == nil { // the recorder numbers it first
			r.target = p
		}
	}
	for _, p := range all {
		switch {
		case p == r.target || workers[p] || p.Kind == "worker" || p.Kind == "task" || torchsOwn(p):
		case usesTorch(p):
			r.torch = append(r.torch, p)
		case p.Hook == "off" && p.EndedBadly() && p.Exit.TsNS-p.Begin > importTime:
			r.unhooked++
		}
	}
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

// torchsOwn are helpers of torch and multiprocessing: they end as they please
// when their parent has.
func torchsOwn(p *timeline.Process) bool {
	for _, name := range []string{"torch/_inductor/compile_worker", "multiprocessing.resource_tracker", "multiprocessing.forkserver", "torch_shm_manager"} {
		if strings.Contains(p.Cmdline, name) {
			return true
		}
	}
	return false
}

func (r *run) findings() (findings []finding.Finding) {
	var groups [][]*crashed // of one command line
	for _, c := range r.crashes {
		i := slices.IndexFunc(groups, func(g []*crashed) bool {
			return g[0].Cmdline == c.Cmdline && g[0].certainty == c.certainty && c.Cmdline != ""
		})
		if i < 0 {
			groups = append(groups, []*crashed{c})
		} else {
			groups[i] = append(groups[i], c)
		}
	}
	for _, g := range groups {
		findings = append(findings, r.finding(g))
	}
	return findings
}

func (r *run) check() finding.Check {
	c := finding.Check{Rule: id, Status: finding.CannotTell}
	sure := slices.ContainsFunc(r.crashes, func(c *crashed) bool { return c.certainty > finding.Note })
	gap := r.t.LossesOf(r.part, r.torch, tables)
	switch {
	case sure:
		c.Status = finding.Found
		c.Reason = fmt.Sprintf("%d of %s crashed, and the command exited with 0", len(r.crashes), processes(len(r.torch)))
	case r.code < 0:
		c.Reason = "the command's exit code is not known"
	case r.code > 0:
		c.Status = finding.Clean
		c.Reason = fmt.Sprintf("the command itself ended with exit code %d", r.code)
	case gap != "":
		c.Reason = gap
	case r.unknown > 0:
		c.Reason = fmt.Sprintf("how %d of %s ended is not known", r.unknown, processes(len(r.torch)))
		if !r.t.Kernel(r.part) {
			c.Reason += ": it is visible in the kernel tier only"
		}
	case r.unhooked > 0:
		c.Reason = fmt.Sprintf("whether %d Pythons that ended badly used torch is not known: they were not hooked", r.unhooked)
	case len(r.crashes) > 0:
		c.Status = finding.Clean
		c.Reason = fmt.Sprintf("%s; what crashed was run again", processes(len(r.torch)))
	default:
		c.Status = finding.Clean
		c.Reason = fmt.Sprintf("%s, none crashed", processes(len(r.torch)))
	}
	return c
}

func processes(n int) string {
	if n == 1 {
		return "1 process that used torch"
	}
	return fmt.Sprintf("%d processes that used torch", n)
}

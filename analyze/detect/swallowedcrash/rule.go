// Package swallowedcrash is the rule swallowed-crash: a process that used torch crashed,
// and the recorded command ended with 0. docs/rules/swallowed-crash.md explains
// it.
package swallowedcrash

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/ends"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "swallowed-crash",
	Title:   "A training process crashed and the command exited with 0",
	Run:     true,
	Sources: []collect.Any{ends.Source},
	Excuses: excuses,
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	var runs []*run // below whose commands torch was used
	var findings []finding.Finding
	inside := ""
	for _, part := range partsOf(c) {
		r := look(c, part)
		for _, b := range r.inside() {
			inside = "an error ended a training inside of its process, and the command exited with 0"
			findings = append(findings, r.brokenOff(b))
		}
		// Where only the command itself is the training, its exit code is its own.
		if len(r.torch) > 0 || r.unhooked > 0 {
			runs = append(runs, r)
			findings = append(findings, r.findings()...)
		}
	}
	if reason := first(runs, (*run).found); reason != "" {
		return detect.Found(reason, findings...)
	}
	if inside != "" {
		return detect.Found(inside, findings...)
	}
	if len(c.Processes) == 0 {
		return detect.CannotTell("no process is known")
	}
	if len(runs) == 0 {
		return detect.NotApplicable(noneBelow(c))
	}
	if reason := first(runs, (*run).unsure); reason != "" {
		return detect.CannotTell(reason).Noting(findings...)
	}
	return detect.Clean(runs[0].clean()).Noting(findings...)
}

// noneBelow names who below the command used torch all the same: workers and the
// children of pools are no trainings of their own.
func noneBelow(c *detect.Case) string {
	known := detect.Of(c, ends.Source)
	var workers, tasks bool
	for _, p := range c.Processes {
		if usesTorch(p) {
			workers = workers || known.IsWorker(p) || p.Kind == "worker"
			tasks = tasks || p.Kind == "task"
		}
	}
	const none = "no process below the command used torch"
	switch {
	case workers && tasks:
		return none + " but workers and children of pools"
	case tasks:
		return none + " but children of pools"
	case workers:
		return none + " but workers"
	}
	return none
}

func partsOf(c *detect.Case) (parts []*traces.Part) {
	for _, p := range c.Processes {
		if !slices.Contains(parts, p.Part) {
			parts = append(parts, p.Part)
		}
	}
	return parts
}

// first is what is said of the first run of which something is.
func first(runs []*run, say func(*run) string) string {
	for _, r := range runs {
		if text := say(r); text != "" {
			return text
		}
	}
	return ""
}

// found says how much was swallowed, if anything was.
func (r *run) found() string {
	if !slices.ContainsFunc(r.crashes, func(c *crashed) bool { return c.certainty > finding.Note }) {
		return ""
	}
	return fmt.Sprintf("%d of %s crashed, and the command exited with 0", len(r.crashes), processes(len(r.torch)))
}

// unsure says what is not known of a run, if it matters.
func (r *run) unsure() string {
	switch {
	case r.code < 0:
		return "the command's exit code is not known"
	case r.code > 0:
		return ""
	case r.unknown > 0 && !r.Kernel(r.part):
		return fmt.Sprintf("how %d of %s ended is not known: it is visible in the kernel tier only", r.unknown, processes(len(r.torch)))
	case r.unknown > 0:
		return fmt.Sprintf("how %d of %s ended is not known", r.unknown, processes(len(r.torch)))
	case r.unhooked > 0:
		return fmt.Sprintf("whether %d Pythons that ended badly used torch is not known: they were not hooked", r.unhooked)
	}
	return ""
}

// clean says why nothing was swallowed. That a command which failed says so is
// right, whatever crashed below it.
func (r *run) clean() string {
	switch {
	case r.code > 0:
		return fmt.Sprintf("the command itself ended with exit code %d", r.code)
	case len(r.crashes) > 0:
		return processes(len(r.torch)) + "; what crashed was run again, or its parent looked at it"
	}
	return processes(len(r.torch)) + ", none crashed"
}

func processes(n int) string { return words.Count(n, "process") + " that used torch" }

// Package fdexhausted is the rule fd-exhausted: a process of the training has no
// descriptor left for what its workers send, or soon has none.
// docs/rules/fd-exhausted.md explains it.
package fdexhausted

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "fd-exhausted",
	Title:   "A process runs out of descriptors",
	Sources: []collect.Any{counted},
	Excuses: []detect.Excuse{{
		Text: "the process that was to send a tensor ended first, or a limit other than that of the process was reached.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			x := f.Facts.(*filled)
			return !x.failure.seen() || x.failure.atLimit() || x.refusal != nil
		},
	}, {
		Text: "the program ends, or lets go of what it keeps, before anything fails for it.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			x := f.Facts.(*filled)
			return x.failure.seen() || x.refusal != nil && x.broken != nil
		},
	}},
	Judge: judge,
}

const (
	// A count at a failure is at the limit if no more than this is left, and is far
	// from it below such a share.
	slack      = 64
	slackShare = 0.2
	plenty     = 0.4

	// A forecast is worth a word if this is so.
	leastCounts  = 4
	leastBatches = 50
	leastGained  = 64
	leastShare   = 0.25 // of the limit, open
	horizon      = 2    // times as many batches as were seen, until the limit is reached

	crowded = 0.8 // of the limit: worth a note

	// Words of EMFILE: of torch, which has tried to open a file, and of Python.
	torchSays  = "Too many open files. Communication with the workers is no longer possible"
	pythonSays = "24, Too many open files"
)

// failure is an error that says that no descriptor was left.
type failure struct {
	*traces.Exception
	worker *timeline.WorkerProcess // nil: in the main process
}

// filled is what is known of the descriptors of a loader's processes.
type filled struct {
	*detect.Case
	main    *timeline.Process
	counts  *counts
	failure *failure // nil: none
	refusal *refusal // nil: none was seen, here and below
	broken  *traces.Exception
	growth  growth // of the process that failed, or the main process
	last    traces.Descriptor
	grower  *timeline.WorkerProcess // whose growth it is; nil: as said
}

func judge(c *detect.Case) detect.Verdict {
	counts := detect.Of(c, counted)
	var found, notes []finding.Finding
	var most use
	seen := 0
	var silent *traces.Exception // a worker that has no descriptor left cannot always say so
	var unsure *filled           // a worker's grow, and whether they go on to is not known
	for _, l := range c.Loaders {
		x := &filled{Case: c, main: l.Process, counts: counts, failure: failureOf(l), refusal: counts.refusalOf(l), broken: brokenOff(l)}
		x.growth = growthOf(counts.points(x.process(), x.process(), x.failure))
		x.last = x.lastCount(x.process())
		fullest := x.fullest(l)
		if fullest.share() >= most.share() {
			most = fullest
		}
		if counts.of(l.Process) != nil {
			seen++
		}
		grows := x.growing(l)
		f := x.look(l, fullest, grows)
		switch {
		case f != nil && f.Certainty > finding.Note:
			found = append(found, *f)
		case f != nil:
			notes = append(notes, *f)
		}
		if f == nil && x.broken != nil && !c.Kernel(l.Process.Part) {
			silent = x.broken
		}
		if grows != nil && !grows.goesOn() {
			unsure = grows
		}
	}
	switch {
	case len(found) > 0:
		return detect.Found(found[0].Title, append(found[:1], notes...)...) // ranks fail alike
	case workersOf(c) == 0:
		return detect.NotApplicable("no workers: no tensor is handed over").Noting(notes...)
	case silent != nil:
		return detect.CannotTell(fmt.Sprintf("the loop ended with %s, as it does when a worker has no descriptor left to send a batch; "+
			"whether a worker was refused one is visible in the kernel tier only", silent.Type)).Noting(notes...)
	case unsure != nil:
		return detect.CannotTell(unsure.noPassToCompare()).Noting(notes...)
	case seen < len(c.Loaders):
		return detect.CannotTell("the descriptors of the training process were not counted").Noting(notes...)
	}
	return detect.Clean(fmt.Sprintf("%s had %s of %s descriptors open, and no other process a greater share", most.who(),
		words.Number(most.Open), words.Number(most.Limit))).Noting(notes...)
}

// look is what is wrong with the processes of one rank; nil: nothing is.
func (x *filled) look(l *timeline.Loader, fullest use, grows *filled) *finding.Finding {
	var f finding.Finding
	switch {
	case x.failure.seen() && x.failure.farFrom():
		f = x.elsewhere()
	case x.failure.seen():
		f = x.exhausted()
	case x.refusal != nil && x.broken != nil && !timedOut(x.broken):
		f = x.refusedOne(finding.Proven)
	case x.refusal != nil && x.refusal.worker != nil && !ended(l):
		f = x.refusedOne(finding.Likely)
	case full(fullest) && !ended(l):
		f = x.nearly(fullest, finding.Likely)
	case x.refusal != nil:
		f = x.refusedOne(finding.Note)
	case x.fills():
		f = x.forecast()
	case grows.goesOn():
		f = grows.forecast()
	case fullest.share() > crowded:
		f = x.nearly(fullest, finding.Note)
	default:
		return nil
	}
	return &f
}

// refusal is that the kernel refused a process descriptors.
type refusal struct {
	traces.Descriptor
	part   *traces.Part
	worker *timeline.WorkerProcess // nil: the main process
}

// refusalOf is the process of a loader that was refused most, workers before their
// main process.
func (c *counts) refusalOf(l *timeline.Loader) (most *refusal) {
	for _, w := range l.WorkerProcesses {
		if w.Process == nil {
			continue
		}
		if r, ok := c.refused[process{w.Process.Part, w.Process.Proc}]; ok && (most == nil || r.Refused > most.Refused) {
			most = &refusal{r, w.Process.Part, w}
		}
	}
	if r, ok := c.refused[process{l.Process.Part, l.Process.Proc}]; ok && most == nil {
		most = &refusal{r, l.Process.Part, nil}
	}
	return most
}

// timedOut reports whether an error says that no batch came: the worker that
// should have sent it may be slow.
func timedOut(e *traces.Exception) bool {
	return strings.HasPrefix(e.Message, "DataLoader timed out after") && e.Type == "RuntimeError"
}

// brokenOff is the error with which a loop ended because a worker closed its end
// while it sent a tensor, or sent nothing; nil: none.
func brokenOff(l *timeline.Loader) *traces.Exception {
	for i := range l.Process.Raised {
		e := &l.Process.Raised[i]
		if e.Stage != "next" || !of(l, e.Loader) {
			continue
		}
		if timedOut(e) {
			return e
		}
		if strings.Contains(e.File, "/multiprocessing/") {
			switch e.Type {
			case "EOFError", "ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError", "FileNotFoundError":
				return e
			}
		}
	}
	return nil
}

func workersOf(c *detect.Case) (n int32) {
	for _, l := range c.Loaders {
		for i := range l.Objects {
			n = max(n, l.Objects[i].NumWorkers)
		}
	}
	return n
}

// failureOf is the first error of a loader's that says that no descriptor is left:
// in its main process, or in a worker, which may not be able to send it.
func failureOf(l *timeline.Loader) *failure {
	for i := range l.Process.Raised {
		e := &l.Process.Raised[i]
		if e.Stage != "exit" && says(e) && e.Worker < 0 && of(l, e.Loader) {
			return &failure{e, nil}
		}
	}
	for _, w := range l.WorkerProcesses {
		if w.Process == nil {
			continue
		}
		for i := range w.Process.Raised {
			if e := &w.Process.Raised[i]; says(e) {
				return &failure{e, w}
			}
		}
	}
	return nil
}

func of(l *timeline.Loader, object uint32) bool {
	for i := range l.Objects {
		if l.Objects[i].Loader == object {
			return true
		}
	}
	return false
}

// says reports whether an error is about descriptors: EMFILE, torch's word for it,
// or a message of a socket that came without what it should have brought. What
// another program's code raises in such words has no count.
func says(e *traces.Exception) bool {
	text := strings.HasPrefix(e.Message, pythonSays) || strings.HasPrefix(e.Message, torchSays) ||
		strings.Contains(e.Message, "Too many open files (24)") || strings.HasPrefix(e.Message, "received 0 items of ancdata")
	return text && (e.Type == "RuntimeError" || e.Type == "OSError")
}

func (f *failure) seen() bool { return f != nil }

// atLimit reports whether the process that failed had no descriptor left. EMFILE
// says so where no other limit has that number; what the failing call had opened,
// and the tensors of a batch that came half, are closed by the time it is counted.
func (f *failure) atLimit() bool {
	switch {
	case f == nil:
		return false
	case strings.Contains(f.Message, "shared memory object </torch_"), strings.HasPrefix(f.Message, torchSays):
		return strings.Contains(f.File, "/torch/")
	case f.Open <= 0 || f.Limit <= 0:
		return false
	case strings.HasPrefix(f.Message, pythonSays):
		return 2*f.Open >= f.Limit
	}
	return float64(f.Limit-f.Open) <= max(slack, slackShare*float64(f.Limit)) && 2*f.Open >= f.Limit
}

// farFrom reports whether the process that failed had descriptors enough.
func (f *failure) farFrom() bool {
	return !f.atLimit() && f.Open > 0 && f.Limit > 0 && float64(f.Open) < plenty*float64(f.Limit)
}

// process that failed, or the main process.
func (x *filled) process() *timeline.Process {
	if x.failure != nil && x.failure.worker != nil {
		return x.failure.worker.Process
	}
	return x.main
}

// use is what a process had open when that was most.
type use struct {
	traces.Descriptor
	process *timeline.Process
	worker  *timeline.WorkerProcess // nil: the main process
}

func (u use) share() float64 { return float64(u.Open) / float64(max(u.Limit, 1)) }

func (u use) who() string {
	if u.worker != nil {
		return fmt.Sprintf("worker %d", u.worker.Number)
	}
	return "the training process"
}

// fullest is the process of a loader that had the greatest share of its
// descriptors open.
func (x *filled) fullest(l *timeline.Loader) (most use) {
	look := func(p *timeline.Process, w *timeline.WorkerProcess) {
		rows := x.counts.of(p)
		for _, r := range rows {
			u := use{r, p, w}
			u.Limit = rows[len(rows)-1].Limit // the program may have raised it
			if u.Limit > 0 && u.share() > most.share() {
				most = u
			}
		}
	}
	look(l.Process, nil)
	for _, w := range l.WorkerProcesses {
		if w.Process != nil {
			look(w.Process, w)
		}
	}
	return most
}

// full reports whether a worker had next to none left.
func full(u use) bool { return u.worker != nil && u.Open > 0 && u.Limit-u.Open <= 2 }

// ended reports whether the last pass of a loader came to its end.
func ended(l *timeline.Loader) bool {
	return len(l.Passes) > 0 && l.Passes[len(l.Passes)-1].Exhausted
}

// lastCount is the last row before the failure, or before the end of the loops,
// in which the process was asked what its descriptors are.
func (x *filled) lastCount(p *timeline.Process) (last traces.Descriptor) {
	for _, r := range x.counts.of(p) {
		if r.Looked > 0 && (x.failure == nil || r.TsNS <= x.failure.TsNS || last.Looked == 0) && r.Open >= last.Open/2 {
			last = r
		}
	}
	return last
}

// fills reports whether the descriptors grow so steadily that the limit is in
// sight.
func (x *filled) fills() bool {
	g, limit := x.growth, x.last.Limit
	if g.counts < leastCounts || g.batches() < leastBatches || g.gained() < leastGained || !g.steady || g.released || limit <= 0 {
		return false
	}
	all := x.counts.deliveries(x.main)
	late := g.last.batches >= all[len(all)-1].n*9/10 // nothing is known of what came after it
	return late && float64(g.last.open) >= leastShare*float64(limit) && x.left() <= horizon*g.batches()
}

// left is how many batches there are until the limit at the pace so far.
func (x *filled) left() int {
	return int(float64(x.last.Limit-x.growth.last.open) / x.growth.perBatch())
}

// underWay is how many batches workers hold ready for the loop at most, and the
// one that it has.
func (x *filled) underWay() int {
	o := x.First().First()
	return int(o.NumWorkers)*max(int(o.Prefetch), 1) + 1
}

// mayKeep reports whether it is so as far as can be told from the failure alone:
// what is under way fills up with the first batches, and it came long after them.
func (x *filled) mayKeep() bool {
	const long = 10
	return x.failure.ofMain() && x.tensors() && x.growth.counts < leastCounts && !x.growth.released &&
		x.counts.batches(x.main, x.failure.TsNS) > long*x.underWay()
}

// kept reports whether the number grew with the batches long after as many were
// under way as can be.
func (x *filled) kept() bool {
	g := x.growth
	return x.failure.ofMain() && g.counts > 1 && g.batches() > x.underWay() && 2*g.gained() > g.last.open && !g.released
}

func (f *failure) ofMain() bool { return f == nil || f.worker == nil }

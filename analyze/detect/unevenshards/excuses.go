package unevenshards

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// doubt is an excuse that nothing excludes.
type doubt int

const (
	agreed    doubt = iota // the ranks may have left their loops together
	ended                  // the shorter one may have failed by itself
	another                // the longer one may have failed by itself
	separate               // each may train by itself
	untrained              // the passes may be no training
)

var excuses = []detect.Excuse{
	{Text: "the ranks agree on when to end, and the failure has another cause.", Excluded: without(agreed)},
	{Text: "the rank that ended first failed by itself, as at a checkpoint.", Excluded: without(ended)},
	{Text: "the rank that was left alone failed for a reason of its own.", Excluded: without(another)},
	{Text: "no gradients of these ranks are reduced together.", Excluded: without(separate)},
	{Text: "these passes are no training.", Excluded: without(untrained)},
}

func without(d doubt) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool { return !slices.Contains(f.Facts.([]doubt), d) }
}

// doubtsOf is what may excuse that a rank was left alone; other: it failed for a
// reason that may be its own.
func (r *ranks) doubtsOf(s *starved, other bool) (all []doubt) {
	a, b := s.ended.Process, s.left.Process
	trains := func(p *timeline.Pass) bool { return p.Role == timeline.Train && !p.Blind }
	if r.mayAgree(a, b) {
		all = append(all, agreed)
	}
	if end := a.Exit; a.EndedBadly() && left.FindString(lastRaised(a)) == "" && (end.Signal == 0 || end.Signal == timeline.SIGKILL) {
		all = append(all, ended)
	}
	if other {
		all = append(all, another)
	}
	if !r.Reduced(a, b) {
		all = append(all, separate)
	}
	if !trains(s.pass) || !trains(s.longer) || s.last.Blind {
		all = append(all, untrained)
	}
	return all
}

// lastRaised is what nobody caught in a process.
func lastRaised(p *timeline.Process) (text string) {
	for i := range p.Raised {
		if e := &p.Raised[i]; e.Stage == "exit" {
			text = e.Type + ": " + e.Message
		}
	}
	return text
}

// mayAgree reports whether the rank that failed may have left its loop together
// with the other. Ranks that agree meet between a batch and its step; then the
// last batch had such a meeting, and no step came of it. A meeting that fails
// tells of ranks that do not come to the same end only if it is one of each step.
func (r *ranks) mayAgree(a, b *timeline.Process) bool {
	if end := lastCalls(b); end != nil {
		return end.Calls > 0 || !eachStep(end, b)
	}
	if lastRaised(b) != "" { // it has called nothing, ever
		return false
	}
	meets := func(g traces.Dist) bool { return g.Op == "meet" }
	return slices.ContainsFunc(a.Groups, meets) || slices.ContainsFunc(b.Groups, meets)
}

// lastCalls is what a rank had called of torch.distributed when it ended; nil: it
// had called nothing, or nobody saw it end.
func lastCalls(p *timeline.Process) *traces.Dist {
	if i := slices.IndexFunc(p.Groups, func(g traces.Dist) bool { return g.Op == "end" }); i >= 0 {
		return &p.Groups[i]
	}
	return nil
}

// eachStep reports whether what raised is called in each step, or is no call of the
// program's at all: the gradients'.
func eachStep(end *traces.Dist, p *timeline.Process) bool {
	return end.Class == "" || 2*uint64(end.Before) >= p.Steps
}

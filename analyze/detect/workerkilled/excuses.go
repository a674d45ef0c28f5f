package workerkilled

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// doubt is an excuse that nothing excludes.
type doubt int

const (
	told    doubt = iota // the whole run may have been
	stopped              // the program may have stopped it itself
)

var excuses = []detect.Excuse{
	{Text: "the whole run was told to stop (Ctrl-C, a scheduler).", Excluded: without(told)},
	{Text: "the program stopped this worker on purpose, and goes on without it.", Excluded: without(stopped)},
}

func without(d doubt) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool { return !slices.Contains(f.Facts.([]doubt), d) }
}

// mayBeOwn reports whether a helper of the program's may have sent the signal that
// ended a worker: one that dptrace does not watch from inside. A program that does
// so is made for it: it goes on with another pass.
func (o *outcome) mayBeOwn(d *death) bool {
	switch o.cause(d).kind {
	case unknownSender, unsaid:
		return d.wentOn()
	case sender:
		fatal := d.Worker.Process.Fatal()
		return fatal.SenderProc != 0 && d.wentOn()
	}
	return false
}

// wentOn reports whether its process began a pass after a worker had died.
func (d *death) wentOn() bool {
	return slices.ContainsFunc(d.Worker.Loader.Process.Loaders, func(l *timeline.Loader) bool {
		return slices.ContainsFunc(l.Passes, func(p *timeline.Pass) bool { return p.Begin > d.When() })
	})
}

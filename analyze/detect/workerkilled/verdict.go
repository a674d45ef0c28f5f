package workerkilled

import (
	"github.com/dptrace/dptrace/analyze/timeline"
)

// verdict says whether a worker died unasked; if neither that nor the contrary
// is known, why.
func (o *outcome) verdict(w *timeline.WorkerProcess) (*death, string) {
	d := &death{End: o.ends.Of(w)}
	switch {
	case w.Pid == 0 || w.Pid == w.Loader.Process.Pid:
		return nil, "it is a thread, or its process is not known"
	case !d.Known && (len(w.Named) == 0 || w.ByServer() && o.unseen(w) != ""):
		return o.unheard(d)
	case d.endedAfterwards() || o.endedByOthers(d):
		return nil, ""
	case d.endedWell():
		return nil, d.early()
	}
	switch d.asked() {
	case yes:
		return nil, ""
	case unsure:
		return nil, "it ended by " + status(d.Death) + ", and whether its parent had asked it to stop is not known"
	}
	if !d.Known { // it may have been such a signal, to the whole run
		d.doubts = append(d.doubts, told)
	}
	if w.Process.Fatal() == nil && polite(d.Death) {
		if o.allAlike(d) || len(w.Named) == 0 { // the loop ended for another reason
			return nil, "it ended by " + status(d.Death) + "; whether the whole run was told to stop is visible in the kernel tier only"
		}
		d.doubts = append(d.doubts, stopped) // a program may stop a worker of its own by such a signal
	} else if o.mayBeOwn(d) {
		d.doubts = append(d.doubts, stopped)
	}
	return d, ""
}

// unheard judges a worker of which nobody told how it ended.
func (o *outcome) unheard(d *death) (*death, string) {
	if q := quit(d.Worker.Process); q != nil && len(d.Worker.Named) == 0 {
		d.TsNS = q.TsNS
		return d, ""
	}
	why := o.unseen(d.Worker)
	if why != "" && d.Worker.ByServer() {
		why = "its fork server did not tell how it ended"
	}
	return nil, why
}

// unseen says why an unknown end is one that matters; "" if it does not: all
// batches of its last pass came.
func (o *outcome) unseen(w *timeline.WorkerProcess) string {
	if last := w.Last(); last != nil && last.Pass.Exhausted {
		return ""
	}
	if o.Kernel(w.Loader.Process.Part) {
		return "how it ended was not seen"
	}
	return "how it ended is visible in the kernel tier only, as its loop was broken off and nobody waited for it"
}

// endedWell reports whether a worker ended with 0 and nobody had a complaint:
// neither torch nor, if it had left a fetch, the loop that missed what it held.
func (d *death) endedWell() bool {
	return d.Known && d.Code == 0 && d.Signal == 0 && len(d.Worker.Named) == 0 && (!quitFirst(d.Worker) || d.missed() == nil)
}

// endedAfterwards reports whether a worker ended when its parent shut its workers
// down, or after its parent: then it ended because of that.
func (d *death) endedAfterwards() bool {
	w := d.Worker
	if w.Exit != nil && w.Exit.Asked == "yes" && !quitFirst(w) {
		return true
	}
	main := w.Loader.Process.Final()
	return d.Exact && main.Exit != nil && main.Exit.Source != "gone" && d.TsNS >= main.Exit.TsNS && len(w.Named) == 0
}

// answer to a question that the trace may leave open.
type answer int

const (
	unsure answer = iota
	yes
	no
)

// asked reports whether a worker that did not end well had been asked to.
func (d *death) asked() answer {
	w := d.Worker
	if w.Exit != nil && w.Exit.Asked == "no" || len(w.Named) > 0 || quitFirst(w) {
		return no
	}
	if !d.Exact {
		if w.Exit != nil && w.Exit.Asked == "yes" {
			return yes
		}
		return unsure
	}
	pass := w.At(d.TsNS)
	switch {
	case pass == nil: // before its first batch
		return no
	case d.TsNS <= pass.Pass.Open:
		return no
	case pass.Pass.Exhausted:
		return yes
	case w.Process.Oom != nil: // which may have taken the parent before it could complain
		return no
	}
	return unsure // later than the last sign of the loop, and torch did not complain
}

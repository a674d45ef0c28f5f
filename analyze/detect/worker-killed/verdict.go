package killed

import (
	"time"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// together is how far apart the ends of processes are that were ended by one
// act: Ctrl-C, a scheduler's signal to all of a job.
const together = int64(5 * time.Second)

// verdict says whether a worker died unasked; if neither that nor the contrary
// is known, why.
func verdict(t *timeline.Timeline, life *timeline.WorkerProcess) (*death, string) {
	end, known := life.Died()
	d := &death{life: life, Death: end, known: known, certainty: finding.Proven}
	switch {
	case life.Pid == 0 || life.Pid == life.Loader.Process.Pid:
		return nil, "it is a thread, or its process is not known"
	case !known && len(life.Named) == 0 && quit(life.Process) != nil:
		d.TsNS = quit(life.Process).TsNS
		return d, ""
	case !known && life.ByServer() && unseen(t, life) != "":
		return nil, "its fork server did not tell how it ended"
	case !known && len(life.Named) == 0:
		return nil, unseen(t, life)
	case known && end.Code == 0 && end.Signal == 0 && len(life.Named) == 0:
		return nil, ""
	case life.Exit != nil && life.Exit.Asked == "yes" && !quitFirst(life), outlived(life, end):
		return nil, ""
	}
	p := life.Process
	fatal := p.Fatal()
	switch {
	case p != nil && (p.Oom != nil || p.Fault() != nil): // not from anybody who could mean the whole run
	case fatal != nil && (timeline.FromAbove(p, fatal) || fatal.SenderProc != 0 && fatal.SenderProc == life.Loader.Process.Proc):
		return nil, ""
	case fatal == nil && p != nil && p.AskedFromAbove() != nil: // a handler ended it with a code
		return nil, ""
	case withAll(t, d, fatal):
		return nil, ""
	}
	switch asked(d) {
	case "":
		return nil, ""
	case "unknown":
		return nil, "it ended by " + status(end) + ", and whether its parent had asked it to stop is not known"
	}
	if !known { // it may have been such a signal, to the whole run
		d.certainty = finding.Likely
	}
	if fatal == nil && polite(end) {
		if allAlike(d) || len(life.Named) == 0 { // the loop ended for another reason
			return nil, "it ended by " + status(end) + "; whether the whole run was told to stop is visible in the kernel tier only"
		}
		d.certainty = finding.Likely // a program may stop a worker of its own by such a signal
	}
	return d, ""
}

// quit is the SystemExit that a fetch raised. torch catches what is an Exception,
// which this is not: it ends the worker. nil: none was seen.
func quit(p *timeline.Process) *traces.Exception {
	if p == nil {
		return nil
	}
	for i := range p.Raised {
		if r := &p.Raised[i]; r.Type == "SystemExit" && r.Worker >= 0 && (r.Stage == "fetch" || r.Stage == "collate") {
			return r
		}
	}
	return nil
}

// quitFirst reports whether the worker was ending already when its loop broke off.
// Until it is gone its parent finds it alive, and asks it to stop.
func quitFirst(life *timeline.WorkerProcess) bool {
	q := quit(life.Process)
	if q == nil {
		return false
	}
	w := life.At(q.TsNS)
	return w != nil && q.TsNS <= w.Pass.Open
}

// unseen says why an unknown end is one that matters; "" if it does not: all
// batches of its last pass came.
func unseen(t *timeline.Timeline, life *timeline.WorkerProcess) string {
	if last := life.Last(); last != nil && last.Pass.Exhausted {
		return ""
	}
	if t.Kernel(life.Loader.Process.Part) {
		return "how it ended was not seen"
	}
	return "how it ended is visible in the kernel tier only, as its loop was broken off and nobody waited for it"
}

// outlived reports whether a worker ended after its parent: then it ended because
// of that.
func outlived(life *timeline.WorkerProcess, end timeline.Death) bool {
	main := life.Loader.Process.Final()
	return end.Exact && main.Exit != nil && main.Exit.Source != "gone" && end.TsNS >= main.Exit.TsNS && len(life.Named) == 0
}

// asked reports whether a worker that did not end well had been asked to: "" yes,
// "no", or "unknown".
func asked(d *death) string {
	life := d.life
	if life.Exit != nil && life.Exit.Asked == "no" || len(life.Named) > 0 || quitFirst(life) {
		return "no"
	}
	if !d.Exact {
		if life.Exit != nil && life.Exit.Asked == "yes" {
			return ""
		}
		return "unknown"
	}
	w := life.At(d.TsNS)
	switch {
	case w == nil: // before its first batch
		return "no"
	case d.TsNS <= w.Pass.Open:
		return "no"
	case w.Pass.Exhausted:
		return ""
	}
	if life.Process.Oom != nil { // which may have taken the parent before it could complain
		return "no"
	}
	return "unknown" // later than the last sign of the loop, and torch did not complain
}

// polite reports whether an end is one that users, shells and schedulers ask for.
// SIGKILL is none: nobody's handler can survive it.
func polite(end timeline.Death) bool {
	signal := end.Signal
	if signal == 0 && end.Code > 128 { // a handler's way to say it
		signal = end.Code - 128
	}
	switch signal {
	case timeline.SIGHUP, timeline.SIGINT, timeline.SIGQUIT, timeline.SIGTERM, timeline.SIGUSR1, timeline.SIGUSR2, timeline.SIGXCPU, timeline.SIGALRM:
		return true
	}
	return false
}

// allAlike reports whether all workers that the same parent had at the time ended
// in the same way: it is the parent's group that was told, and it may have
// gone on by a handler of its own.
func allAlike(d *death) bool {
	for _, l := range d.life.Loader.Process.Loaders {
		for _, other := range l.Lives {
			if other == d.life || !overlap(other, d) {
				continue
			}
			end, known := other.Died()
			if known && end.Signal != d.Signal {
				return false
			}
		}
	}
	return true
}

// overlap reports whether a worker lived when another died.
func overlap(other *timeline.WorkerProcess, d *death) bool {
	if other.Begin == nil || other.Begin.TsNS > d.when() {
		return false
	}
	end, known := other.Died()
	return !known || end.TsNS >= d.when()-together
}

// withAll reports whether a worker ended with the whole run: the main process got
// the same signal from the same sender, or was ended by a signal, or by Ctrl-C,
// at the same time.
func withAll(t *timeline.Timeline, d *death, fatal *traces.Signal) bool {
	main := d.life.Loader.Process.Final()
	near := func(ns int64) bool { return ns-d.when() <= together && d.when()-ns <= together }
	sender := fatal
	if sender == nil && d.life.Process != nil { // a handler of its own ended it
		for i := range d.life.Process.Signals {
			if s := &d.life.Process.Signals[i]; timeline.Ends(s.Signal) && near(s.TsNS) {
				sender = s
			}
		}
	}
	if sender != nil {
		for i := range main.Signals {
			if s := &main.Signals[i]; near(s.TsNS) && sameSender(s, sender) && (s.Signal == sender.Signal || timeline.Ends(s.Signal)) {
				return true
			}
		}
	}
	if e := main.Exit; e != nil && near(e.TsNS) && (e.Signal != 0 || e.ExitCode > 128) && !counted(t, d) {
		ended := timeline.Death{Code: e.ExitCode, Signal: e.Signal}
		theirs := main.Fatal()
		if polite(ended) || e.Signal == timeline.SIGKILL {
			return theirs == nil || sender == nil || sameSender(theirs, sender)
		}
	}
	if d.Signal == timeline.SIGINT || d.Signal == 0 && d.Code == 1 || d.Code == 128+timeline.SIGINT {
		for i := range main.Raised {
			if r := &main.Raised[i]; r.Type == "KeyboardInterrupt" && near(r.TsNS) {
				return true
			}
		}
	}
	return false
}

func sameSender(a, b *traces.Signal) bool {
	return a.SenderPid == b.SenderPid && a.SenderComm == b.SenderComm
}

// counted reports whether the out-of-memory killer ran when a worker got SIGKILL.
func counted(t *timeline.Timeline, d *death) bool {
	if d.Signal != timeline.SIGKILL {
		return false
	}
	from, to := d.span()
	for _, k := range t.OomKills(d.life.Loader.Process.Part, from, to) {
		if k.Kills > 0 {
			return true
		}
	}
	return false
}

// span is when it died: not before from, not after to.
func (d *death) span() (from, to int64) {
	to = d.when()
	if d.Exact {
		return to, to
	}
	return to - 2*together, to
}

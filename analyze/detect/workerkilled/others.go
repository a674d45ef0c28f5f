package workerkilled

import (
	"slices"
	"time"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// together is how far apart the ends of processes are that were ended by one
// act: Ctrl-C, a scheduler's signal to all of a job.
const together = int64(5 * time.Second)

// near reports whether something happened when a worker died.
func (d *death) near(ns int64) bool { return ns-d.When() <= together && d.When()-ns <= together }

// endedByOthers reports whether a worker was ended from above, or with the whole
// run. Memory that it could not have is not from anybody who could mean that.
func (o *outcome) endedByOthers(d *death) bool {
	p := d.Worker.Process
	if p != nil && (p.Oom != nil || p.Fault() != nil) {
		return false
	}
	return d.fromAbove() || o.byProgram(d) || o.withAll(d)
}

// byProgram reports whether a Python of the run was seen sending the worker the
// signal that ended it: the program gave it up.
func (o *outcome) byProgram(d *death) bool {
	signal := d.Signal
	if signal == 0 && d.Code > 128 { // a handler's way to say it
		signal = d.Code - 128
	}
	if signal <= 0 {
		return false
	}
	by, _ := o.SentBy(d.Worker.Loader.Process.Part, d.Worker.Pid, signal, d.When())
	return by != nil
}

// fromAbove reports whether the parent of a worker, or theirs, ended it.
func (d *death) fromAbove() bool {
	p := d.Worker.Process
	if p == nil {
		return false
	}
	if fatal := p.Fatal(); fatal != nil {
		return timeline.FromAbove(p, fatal) || fatal.SenderProc != 0 && fatal.SenderProc == d.Worker.Loader.Process.Proc
	}
	return p.AskedFromAbove() != nil // a handler ended it with a code
}

// withAll reports whether a worker ended with the whole run: the main process got
// the same signal from the same sender, or was ended by a signal, or by Ctrl-C,
// at the same time.
func (o *outcome) withAll(d *death) bool {
	main := d.Worker.Loader.Process.Final()
	sent := d.sent()
	if sent != nil && d.sentTo(main, sent) {
		return true
	}
	if o.endedLikewise(d, main) {
		theirs := main.Fatal()
		return theirs == nil || sent == nil || sameSender(theirs, sent)
	}
	return d.interrupted(main)
}

// sent is the signal that ended a worker, by a handler of its own or not; nil:
// none was seen.
func (d *death) sent() *traces.Signal {
	p := d.Worker.Process
	if p == nil || p.Fatal() != nil {
		return p.Fatal()
	}
	for i := len(p.Signals) - 1; i >= 0; i-- {
		if s := &p.Signals[i]; timeline.Ends(s.Signal) && d.near(s.TsNS) {
			return s
		}
	}
	return nil
}

// sentTo reports whether the main process got the worker's signal as well, or
// another of its sender's by which programs are ended.
func (d *death) sentTo(main *timeline.Process, sent *traces.Signal) bool {
	return slices.ContainsFunc(main.Signals, func(s traces.Signal) bool {
		return d.near(s.TsNS) && sameSender(&s, sent) && (s.Signal == sent.Signal || timeline.Ends(s.Signal))
	})
}

// endedLikewise reports whether the main process was ended by a signal when the
// worker died, and not for want of memory.
func (o *outcome) endedLikewise(d *death, main *timeline.Process) bool {
	e := main.Exit
	if e == nil || !d.near(e.TsNS) || e.Signal == 0 && e.ExitCode <= 128 || o.memoryWasShort(d) {
		return false
	}
	return e.Signal == timeline.SIGKILL || polite(timeline.Death{Code: e.ExitCode, Signal: e.Signal})
}

// interrupted reports whether Ctrl-C ended the loop when it may have ended the
// worker.
func (d *death) interrupted(main *timeline.Process) bool {
	if d.Signal != timeline.SIGINT && (d.Signal != 0 || d.Code != 1) && d.Code != 128+timeline.SIGINT {
		return false
	}
	return slices.ContainsFunc(main.Raised, func(r traces.Exception) bool { return r.Type == "KeyboardInterrupt" && d.near(r.TsNS) })
}

func sameSender(a, b *traces.Signal) bool {
	return a.SenderPid == b.SenderPid && a.SenderComm == b.SenderComm
}

// polite reports whether an end is one that users, shells and schedulers ask for.
// SIGKILL is none: nobody's handler can survive it.
func polite(end timeline.Death) bool {
	signal := end.Signal
	if signal == 0 && end.Code > 128 { // a handler's way to say it
		signal = end.Code - 128
	}
	switch signal {
	case timeline.SIGHUP, timeline.SIGINT, timeline.SIGQUIT, timeline.SIGTERM,
		timeline.SIGUSR1, timeline.SIGUSR2, timeline.SIGXCPU, timeline.SIGALRM:
		return true
	}
	return false
}

// allAlike reports whether all workers that the same parent had at the time ended
// in the same way: it is the parent's group that was told, and it may have
// gone on by a handler of its own.
func (o *outcome) allAlike(d *death) bool {
	for _, l := range d.Worker.Loader.Process.Loaders {
		for _, w := range l.WorkerProcesses {
			if other := o.ends.Of(w); w != d.Worker && o.overlap(w, d) && other.Known && other.Signal != d.Signal {
				return false
			}
		}
	}
	return true
}

// overlap reports whether a worker lived when another died.
func (o *outcome) overlap(w *timeline.WorkerProcess, d *death) bool {
	if w.Begin == nil || w.Begin.TsNS > d.When() {
		return false
	}
	end := o.ends.Of(w)
	return !end.Known || end.TsNS >= d.When()-together
}

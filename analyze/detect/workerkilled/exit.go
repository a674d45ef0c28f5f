package workerkilled

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// exit is an exit code: what was raised says where it comes from.
func (o *outcome) exit(d *death) cause {
	c := cause{kind: exited, short: status(d.Death)}
	if p := d.Worker.Process; p != nil {
		for i := len(p.Raised) - 1; i >= 0; i-- {
			r := &p.Raised[i]
			if r.Stage != "exit" && r.Type != "SystemExit" {
				continue // handed to the training loop
			}
			c.where = timeline.Place(p.Cwd, r.File, r.Line)
			c.short = fmt.Sprintf("%s at %s", r.Type, c.where)
			if d.Known {
				c.short += ", " + status(d.Death)
			}
			text := r.Type
			if r.Message != "" {
				text += ": " + r.Message
			}
			if r.Sample >= 0 {
				text += fmt.Sprintf(" (sample %d)", r.Sample)
			}
			text = fmt.Sprintf("It was ended by %s, raised in %s at %s", text, r.Func, c.where)
			if r.Stage == "exit" {
				c.say("%s, outside of a fetch: torch hands over only what a fetch raises.", text)
			} else {
				c.say("%s. torch hands an Exception to the training loop; this one it does not.", text)
			}
			c.refer(ref(p.Part, "exception", r.Seq))
			return c
		}
	}
	c.say("An exit code without an exception in a fetch comes from os._exit(), sys.exit(), or from an exception before the first fetch, " +
		"as when a spawned worker cannot load its dataset; stderr has its traceback.")
	return c
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
func quitFirst(w *timeline.WorkerProcess) bool {
	q := quit(w.Process)
	if q == nil {
		return false
	}
	pass := w.At(q.TsNS)
	return pass != nil && q.TsNS <= pass.Pass.Open
}

// missed is the error that ended the pass of a worker as the loop reached for what
// a process held that was gone; nil: none did.
func (d *death) missed() *traces.Exception {
	w := d.pass()
	if w == nil || w.Pass.Exhausted {
		return nil
	}
	main := d.Worker.Loader.Process
	for i := range main.Raised {
		e := &main.Raised[i]
		if e.Stage != "next" || e.Loader != w.Pass.Object || e.Pass != w.Pass.Recorded || !strings.Contains(e.File, "/multiprocessing/") {
			continue
		}
		switch e.Type {
		case "FileNotFoundError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError", "EOFError":
			return e
		}
	}
	return nil
}

// early says why it is not known whether a worker that ended with 0 had been asked
// to; "": it had, or all batches came.
func (d *death) early() string {
	w := d.pass()
	if w == nil || w.Pass.Exhausted {
		return ""
	}
	if quitFirst(d.Worker) { // by a handler's sys.exit(), perhaps
		return "it left a fetch by SystemExit and ended with exit code 0; whether the whole run was told to stop is not known"
	}
	if e := d.missed(); e != nil && d.Worker.Exit != nil && d.Worker.Exit.Asked == "no" {
		return "it ended with exit code 0 before it was asked to, and the loop got " + e.Type + "; what ended it is not known"
	}
	return ""
}

package workerkilled

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// cause is why a worker died: one of the kinds, as far as it is known.
type cause struct {
	kind  kind
	short string // for the title, after "died: "
	texts []finding.Evidence
	where string // of an exit: file:line that ended it; of memory: the control group or "this machine"
	limit int64  // of the memory, bytes
}

type kind int

const (
	unknownSender kind = iota // a signal whose sender was not seen
	cgroupOom
	hostOom
	oomNear // SIGKILL while the out-of-memory killer was at work
	sigbusShm
	sigbusFile
	sigbus // of a mapping that was not seen
	fault  // SIGSEGV, SIGILL, SIGFPE
	abort
	sender
	bySelf
	exited
	unsaid // torch only says that it ended
)

func (o *outcome) cause(d *death) cause {
	p := d.Worker.Process
	switch {
	case !d.Known && quit(p) != nil:
		return o.exit(d)
	case !d.Known:
		return cause{kind: unsaid, short: "how is not known"}
	case p != nil && p.Oom != nil:
		return o.oom(d)
	case d.Signal == 0:
		return o.exit(d)
	case d.Signal == timeline.SIGBUS || p.Fault() != nil:
		return o.fault(d)
	}
	if fatal := p.Fatal(); fatal != nil {
		return o.bySignal(d, fatal)
	}
	c := cause{kind: unknownSender, short: status(d.Death)}
	switch d.Signal {
	case timeline.SIGKILL:
		c = o.killed(d)
	case timeline.SIGSEGV, timeline.SIGILL, timeline.SIGFPE:
		c.kind = fault
		c.say("Which address it used is visible in the kernel tier only.")
	case timeline.SIGABRT:
		c.kind = abort
		c.say("A worker that gets SIGABRT has called abort() itself, " + aborts)
	default:
		c.say("Who sent it is visible in the kernel tier only.")
	}
	return c
}

// aborts says when programs do.
const aborts = "as C++ does for an exception that nobody catches and malloc for a damaged heap; stderr has the message."

func (c *cause) say(format string, args ...any) {
	c.texts = append(c.texts, finding.Evidence{Text: fmt.Sprintf(format, args...)})
}

func (c *cause) refer(refs ...finding.Ref) {
	e := &c.texts[len(c.texts)-1]
	e.Refs = append(e.Refs, refs...)
}

func ref(part *traces.Part, table string, seq uint64) finding.Ref {
	return finding.Ref{Part: part.Name, Table: table, Seq: seq}
}

// status is SIGKILL, or exit code 3.
func status(d timeline.Death) string {
	switch {
	case d.Signal > 0:
		return timeline.SignalName(d.Signal)
	case d.Signal < 0:
		return "a signal"
	}
	return fmt.Sprintf("exit code %d", d.Code)
}

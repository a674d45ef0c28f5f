package workerkilled

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// fault is an access to memory that could not be, or SIGBUS in general.
func (o *outcome) fault(d *death) cause {
	p := d.Worker.Process
	f := p.Fault()
	if f == nil {
		if fatal := p.Fatal(); fatal != nil && !timeline.BySelf(p, fatal) {
			return o.bySignal(d, fatal)
		}
		c := cause{kind: sigbus, short: "SIGBUS, in memory whose backing is gone"}
		c.say("SIGBUS comes from mapped memory whose backing is gone: /dev/shm is full, or a mapped file became shorter. " +
			"Which memory it was is visible in the kernel tier only.")
		return c
	}
	at := fmt.Sprintf("0x%x", f.Address)
	what := mapping(f)
	c := cause{kind: fault, short: fmt.Sprintf("%s at address %s, %s", timeline.SignalName(f.Signal), at, what)}
	shm := f.Mapping == "shm" || strings.HasPrefix(f.MappingPath, "/dev/shm/")
	switch {
	case f.Signal == timeline.SIGBUS && shm && timeline.BehindEnd(f):
		c.kind, c.where, c.short = sigbusFile, f.MappingPath, "SIGBUS in "+what+", behind the end of the file"
		c.say("Its access to %s at %s lies %s behind the begin of that file, which had %s: it became shorter than its mapping. "+
			"That is no want of room (SIGBUS, code %d).", what, at, words.Bytes(f.FileOffset), words.Bytes(f.FileSize), f.SiCode)
	case f.Signal == timeline.SIGBUS && shm:
		c.kind, c.short = sigbusShm, "SIGBUS in "+what+", shared memory was full"
		c.say("Its access to %s at %s found no page left in the file system of that mapping (SIGBUS, code %d).", what, at, f.SiCode)
	case f.Signal == timeline.SIGBUS && f.Mapping == "file":
		c.kind, c.where, c.short = sigbusFile, f.MappingPath, "SIGBUS in "+what+", which is not shared memory"
		c.say("Its access to %s at %s lies behind the end of the file (it became shorter than its mapping), "+
			"or the file system could not read it (SIGBUS, code %d). /dev/shm has no part in it.", what, at, f.SiCode)
	case f.Signal == timeline.SIGBUS:
		c.kind = sigbus
		c.say("It accessed %s at %s (SIGBUS, code %d).", what, at, f.SiCode)
	default:
		c.say("It accessed %s at %s (%s, code %d).", what, at, timeline.SignalName(f.Signal), f.SiCode)
	}
	c.refer(ref(p.Part, "signal", f.Seq))
	return c
}

// mapping says what lies at the address of a fault.
func mapping(f *traces.Signal) string {
	switch f.Mapping {
	case "none":
		if f.Address < 4096 {
			return "a null pointer"
		}
		return "memory that is not mapped"
	case "":
		return "memory of an unknown mapping"
	case "anon":
		return "anonymous memory"
	case "heap", "stack":
		return "the " + f.Mapping
	}
	if f.MappingPath == "" {
		return "shared memory"
	}
	return f.MappingPath
}

// bySignal is a signal that somebody sent.
func (o *outcome) bySignal(d *death, s *traces.Signal) cause {
	p := d.Worker.Process
	name := timeline.SignalName(s.Signal)
	c := cause{kind: sender}
	switch {
	case timeline.BySelf(p, s) && s.Signal == timeline.SIGABRT:
		c.kind, c.short = abort, "SIGABRT, it called abort()"
		c.say("It sent SIGABRT to itself: abort(), as C++ calls it for an exception that nobody catches and malloc for a damaged heap; " +
			"stderr has the message.")
	case timeline.BySelf(p, s):
		c.kind, c.short = bySelf, name+", which it sent to itself"
		c.say("It sent %s to itself.", name)
	case s.SenderPid == 0 && s.SenderComm == "":
		c.short = name + " from the kernel"
		c.say("The kernel sent %s (code %d).", name, s.SiCode)
	case s.SenderPid == 0:
		c.short = fmt.Sprintf("%s sent by %s", name, s.SenderComm)
		c.say("%s was sent by %s, a process outside of the recorder's pid namespace.", name, s.SenderComm)
	default:
		who := fmt.Sprintf("pid %d (%s)", s.SenderPid, s.SenderComm)
		c.short = name + " sent by " + who
		text := fmt.Sprintf("%s was sent by %s", name, who)
		if line := o.cmdline(d, s); line != "" {
			text += ": " + line
		}
		if s.SenderProc == 0 {
			text += ", which is not of the run"
		}
		c.say("%s.", text)
	}
	c.refer(ref(p.Part, "signal", s.Seq))
	return c
}

// cmdline of who sent a signal: it may have ended before anybody could ask it,
// and yet be a process of the run.
func (o *outcome) cmdline(d *death, s *traces.Signal) string {
	if s.SenderCmdline == "" && s.SenderProc != 0 {
		if p := o.Process(d.Worker.Loader.Process.Part, s.SenderProc); p != nil {
			return p.Cmdline
		}
	}
	return s.SenderCmdline
}

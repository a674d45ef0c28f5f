package killed

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

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
	p := d.life.Process
	switch {
	case !d.known && quit(p) != nil:
		return o.exit(d)
	case !d.known:
		return cause{kind: unsaid, short: "how is not known"}
	case p != nil && p.Oom != nil:
		return o.oom(d)
	case d.Signal == 0:
		return o.exit(d)
	case d.Signal == timeline.SIGBUS || p.Fault() != nil:
		return o.fault(d)
	}
	if fatal := p.Fatal(); fatal != nil {
		return o.sent(d, fatal)
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
		c.say("A worker that gets SIGABRT has called abort() itself, as C++ does for an exception that nobody catches and malloc for a damaged heap; stderr has the message.")
	default:
		c.say("Who sent it is visible in the kernel tier only.")
	}
	return c
}

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

// oom names the memory that was short, once the killer has chosen the worker.
func (o *outcome) oom(d *death) cause {
	p := d.life.Process
	c := cause{kind: hostOom, short: "the out-of-memory killer chose it, the machine was out of memory", where: "this machine"}
	from, to := d.span()
	var host *timeline.OomKills
	for _, k := range o.t.OomKills(p.Part, from, to) {
		if k.Before.Scope == "host" {
			host = &k
			continue
		}
		if k.Kills > 0 && c.kind == hostOom && !(full(host) && !full(&k)) {
			c.kind, c.where, c.limit = cgroupOom, "control group "+k.Before.Path, k.Before.Limit
			c.short = fmt.Sprintf("the out-of-memory killer chose it, %s may use %s", c.where, words.Bytes(c.limit))
			c.say("The out-of-memory counter of %s rose from %d to %d; its limit is %s.", c.where, k.Before.OomKills, k.After.OomKills, words.Bytes(c.limit))
			c.refer(ref(p.Part, "limit", k.Before.Seq), ref(p.Part, "limit", k.After.Seq))
		}
	}
	if c.kind == hostOom && host != nil {
		c.limit = host.Before.Limit
		c.say("No control group with a limit counts a kill at that time; the machine has %s.", words.Bytes(c.limit))
		c.refer(ref(p.Part, "limit", host.Before.Seq))
	}
	c.say("The kernel's out-of-memory killer marked pid %d (%s) as its victim.", p.Pid, p.Oom.Comm)
	c.refer(ref(p.Part, "oom", p.Oom.Seq))
	c.users(d)
	return c
}

// full reports whether nearly all of a limit was in use.
func full(k *timeline.OomKills) bool {
	return k != nil && k.Before.Limit > 0 && max(k.Before.Usage, k.After.Usage) > k.Before.Limit/20*19
}

// killed is SIGKILL without a row that tells who sent it: the counters say
// whether the out-of-memory killer was at work.
func (o *outcome) killed(d *death) cause {
	part := d.life.Loader.Process.Part
	c := cause{kind: unknownSender, short: status(d.Death)}
	from, to := d.span()
	quiet := ""
	for _, k := range o.t.OomKills(part, from, to) {
		where := "control group " + k.Before.Path
		if k.Before.Scope == "host" {
			where = "this machine"
		}
		refs := []finding.Ref{ref(part, "limit", k.Before.Seq), ref(part, "limit", k.After.Seq)}
		switch kills := o.sigkills(k.Before.TsNS, k.After.TsNS); {
		case k.Kills == 0 && k.Before.Scope != "host" && k.Before.TsNS <= from && k.After.TsNS >= d.when():
			quiet = fmt.Sprintf("The out-of-memory counter of %s stayed at %d: its limit of %s is not what killed it.", where, k.After.OomKills, words.Bytes(k.Before.Limit))
			c.say("%s", quiet)
			c.refer(refs...)
		case k.Kills > 0 && k.Before.Scope != "host" && int(k.Kills) == kills && k.After.TsNS >= d.when():
			c = cause{kind: cgroupOom, where: where, limit: k.Before.Limit, short: fmt.Sprintf("SIGKILL by the out-of-memory killer, %s may use %s", where, words.Bytes(k.Before.Limit))}
			c.say("The out-of-memory counter of %s rose from %d to %d in this time, in which exactly %s of the run got SIGKILL; its limit is %s.",
				where, k.Before.OomKills, k.After.OomKills, words.Count(kills, "process"), words.Bytes(c.limit))
			c.refer(refs...)
			c.users(d)
			return c
		case k.Kills > 0:
			c.kind, c.where, c.limit = oomNear, where, k.Before.Limit
			c.short = fmt.Sprintf("SIGKILL while the out-of-memory killer was at work on %s", where)
			c.say("The out-of-memory counter of %s rose from %d to %d in this time, in which %s of the run got SIGKILL.", where, k.Before.OomKills, k.After.OomKills, words.Count(kills, "process"))
			c.refer(refs...)
			c.users(d)
			return c
		}
	}
	c.say("Who sent SIGKILL is visible in the kernel tier only.")
	return c
}

// sigkills counts the processes of the run that got SIGKILL in some time, as far
// as it is known.
func (o *outcome) sigkills(from, to int64) (n int) {
	counted := map[*timeline.Process]bool{}
	for _, l := range o.t.Loaders {
		for _, life := range l.Lives {
			end, known := life.Died()
			d := death{life: life, Death: end}
			if known && end.Signal == timeline.SIGKILL && from < d.when() && d.when() <= to {
				n++
				counted[life.Process] = true
			}
		}
	}
	for _, p := range o.t.Processes {
		if p.EndKnown() && p.Exit.Signal == timeline.SIGKILL && !counted[p] && p.Next == nil && from < p.Exit.TsNS && p.Exit.TsNS <= to {
			n++
		}
	}
	return n
}

// users says who had the memory.
func (c *cause) users(d *death) {
	main := d.life.Loader.Process
	if main.Memory.Rss == 0 {
		return
	}
	text := fmt.Sprintf("Last seen resident: %s in the main process", words.Bytes(main.Memory.Rss))
	var least, most int64
	n := 0
	for _, life := range d.life.Loader.Lives {
		p := life.Process
		if p == nil || p.Memory.Rss == 0 || !overlap(life, d) {
			continue
		}
		if n++; n == 1 {
			least = p.Memory.Rss
		}
		least, most = min(least, p.Memory.Rss), max(most, p.Memory.Rss)
	}
	if n > 0 {
		text += fmt.Sprintf(", %s to %s in each of %s (pages that they share are in each)", words.Bytes(least), words.Bytes(most), words.Count(n, "worker"))
	}
	c.say("%s.", text)
	c.refer(ref(main.Part, "memory", main.Memory.Seq))
}

// fault is an access to memory that could not be, or SIGBUS in general.
func (o *outcome) fault(d *death) cause {
	p := d.life.Process
	f := p.Fault()
	if f == nil {
		if fatal := p.Fatal(); fatal != nil && !timeline.BySelf(p, fatal) {
			return o.sent(d, fatal)
		}
		c := cause{kind: sigbus, short: "SIGBUS, in memory whose backing is gone"}
		c.say("SIGBUS comes from mapped memory whose backing is gone: /dev/shm is full, or a mapped file became shorter. Which memory it was is visible in the kernel tier only.")
		return c
	}
	at := fmt.Sprintf("0x%x", f.Address)
	what := mapping(f)
	c := cause{kind: fault, short: fmt.Sprintf("%s at address %s, %s", timeline.SignalName(f.Signal), at, what)}
	shm := f.Mapping == "shm" || strings.HasPrefix(f.MappingPath, "/dev/shm/")
	switch {
	case f.Signal == timeline.SIGBUS && shm:
		c.kind, c.short = sigbusShm, "SIGBUS in "+what+", shared memory was full"
		c.say("Its access to %s at %s found no page left in the file system of that mapping (SIGBUS, code %d).", what, at, f.SiCode)
	case f.Signal == timeline.SIGBUS && f.Mapping == "file":
		c.kind, c.where, c.short = sigbusFile, f.MappingPath, "SIGBUS in "+what+", which is not shared memory"
		c.say("Its access to %s at %s lies behind the end of the file (it became shorter than its mapping), or the file system could not read it (SIGBUS, code %d). /dev/shm has no part in it.", what, at, f.SiCode)
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

// sent is a signal that somebody sent.
func (o *outcome) sent(d *death, s *traces.Signal) cause {
	p := d.life.Process
	name := timeline.SignalName(s.Signal)
	c := cause{kind: sender}
	switch {
	case timeline.BySelf(p, s) && s.Signal == timeline.SIGABRT:
		c.kind, c.short = abort, "SIGABRT, it called abort()"
		c.say("It sent SIGABRT to itself: abort(), as C++ calls it for an exception that nobody catches and malloc for a damaged heap; stderr has the message.")
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
		if p := o.t.Process(d.life.Loader.Process.Part, s.SenderProc); p != nil {
			return p.Cmdline
		}
	}
	return s.SenderCmdline
}

// exit is an exit code: what was raised says where it comes from.
func (o *outcome) exit(d *death) cause {
	c := cause{kind: exited, short: status(d.Death)}
	if p := d.life.Process; p != nil {
		for i := len(p.Raised) - 1; i >= 0; i-- {
			r := &p.Raised[i]
			if r.Stage != "exit" && r.Type != "SystemExit" {
				continue // handed to the training loop
			}
			c.where = timeline.Place(p.Cwd, r.File, r.Line)
			c.short = fmt.Sprintf("%s at %s", r.Type, c.where)
			if d.known {
				c.short += ", " + status(d.Death)
			}
			text := r.Type
			if r.Message != "" {
				text += ": " + r.Message
			}
			if r.Sample >= 0 {
				text += fmt.Sprintf(" (sample %d)", r.Sample)
			}
			c.say("It was ended by %s, raised in %s at %s. torch hands an Exception to the training loop; this one it does not.", text, r.Func, c.where)
			if r.Stage == "exit" {
				c.texts[0].Text = fmt.Sprintf("It was ended by %s, raised in %s at %s, outside of a fetch: torch hands over only what a fetch raises.", text, r.Func, c.where)
			}
			c.refer(ref(p.Part, "exception", r.Seq))
			return c
		}
	}
	c.say("An exit code without an exception in a fetch comes from os._exit(), sys.exit(), or from an exception before the first fetch, as when a spawned worker cannot load its dataset; stderr has its traceback.")
	return c
}

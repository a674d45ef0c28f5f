package timeline

import (
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// exitSources are the sources of traces.Exit, the surest first.
var exitSources = []string{"kernel", "wait", "exitcode", "gone"}

// surer is the one of two exit rows of a process that says more; the later one
// of equals.
func surer(old, e *traces.Exit) *traces.Exit {
	if old != nil && rank(old.Source) < rank(e.Source) {
		return old
	}
	return e
}

func rank(source string) int {
	if i := slices.Index(exitSources, source); i >= 0 {
		return i
	}
	return len(exitSources) // of a newer dptrace
}

// EndKnown reports whether it is known how the process ended, not only that it did.
func (p *Process) EndKnown() bool {
	return p.Exit != nil && (p.Exit.ExitCode >= 0 || p.Exit.Signal != 0)
}

// EndedBadly reports whether it is known that a signal or a code other than 0
// ended the process.
func (p *Process) EndedBadly() bool {
	return p.EndKnown() && (p.Exit.Signal != 0 || p.Exit.ExitCode != 0)
}

// Exact reports whether the time of an exit row is that of the exit. The others
// are written when somebody noticed.
func Exact(e *traces.Exit) bool { return e != nil && e.Source == "kernel" }

// BySelf reports whether a process sent a signal to itself, as abort() does.
func BySelf(p *Process, s *traces.Signal) bool {
	return s.SenderProc != 0 && s.SenderProc == p.Proc || s.SenderPid != 0 && s.SenderPid == p.Pid
}

// FromAbove reports whether a signal came from the parent of a process, or from
// one of theirs: then it was asked to end. What it sent to itself, or what its
// own access to memory raised, did not.
func FromAbove(p *Process, s *traces.Signal) bool {
	return s.SenderAncestor && s.SiCode <= 0 && !BySelf(p, s)
}

// Fatal is the signal row that tells of the signal which ended the process: of
// those with its number the last one not later than the end. What a process
// sends to itself comes last: torch's workers have a handler of SIGTERM that
// sends it to itself again, if it was not the parent who sent it. nil: there is
// none.
func (p *Process) Fatal() *traces.Signal {
	if p == nil || p.Exit == nil || p.Exit.Signal == 0 {
		return nil
	}
	var own *traces.Signal
	for i := len(p.Signals) - 1; i >= 0; i-- {
		s := &p.Signals[i]
		if s.Signal != p.Exit.Signal || Exact(p.Exit) && s.TsNS > p.Exit.TsNS {
			continue
		}
		if !BySelf(p, s) {
			return s
		}
		if own == nil {
			own = s
		}
	}
	return own
}

// Fault is the first access to memory (or instruction) that raised the signal
// which ended the process. A handler that reports it raises it again, so the
// last row may be the process's own. nil: none was seen.
func (p *Process) Fault() *traces.Signal {
	if p == nil || p.Exit == nil {
		return nil
	}
	for i := range p.Signals {
		if s := &p.Signals[i]; s.Signal == p.Exit.Signal && s.SiCode > 0 && s.SiCode != fromKernel {
			return s
		}
	}
	return nil
}

// fromKernel is SI_KERNEL: no fault with an address that means anything.
const fromKernel = 128

// BehindEnd reports whether a fault was behind the end of a mapped file: it became shorter than its mapping. That is no want of room.
func BehindEnd(f *traces.Signal) bool {
	const page = 4096
	return f.FileOffset > 0 && f.FileOffset >= (f.FileSize+page-1)/page*page
}

// AskedFromAbove is the last signal that the parent of a process, or theirs,
// sent to it. It may have ended with a code of its own after it.
func (p *Process) AskedFromAbove() *traces.Signal {
	for i := len(p.Signals) - 1; i >= 0; i-- {
		if s := &p.Signals[i]; FromAbove(p, s) && Ends(s.Signal) {
			return s
		}
	}
	return nil
}

// Numbers of signals. Those above 2, 6, 9, 11, 13 and 15 are Linux's, not of all
// its architectures (MIPS counts otherwise; torch does not run there).
const (
	SIGHUP  = 1
	SIGINT  = 2
	SIGQUIT = 3
	SIGILL  = 4
	SIGTRAP = 5
	SIGABRT = 6
	SIGBUS  = 7
	SIGFPE  = 8
	SIGKILL = 9
	SIGUSR1 = 10
	SIGSEGV = 11
	SIGUSR2 = 12
	SIGPIPE = 13
	SIGALRM = 14
	SIGTERM = 15
	SIGXCPU = 24
	SIGXFSZ = 25
	SIGSYS  = 31
)

var signalNames = map[int32]string{
	SIGHUP: "SIGHUP", SIGINT: "SIGINT", SIGQUIT: "SIGQUIT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP", SIGABRT: "SIGABRT", SIGBUS: "SIGBUS",
	SIGFPE: "SIGFPE", SIGKILL: "SIGKILL", SIGUSR1: "SIGUSR1", SIGSEGV: "SIGSEGV", SIGUSR2: "SIGUSR2", SIGPIPE: "SIGPIPE", SIGALRM: "SIGALRM",
	SIGTERM: "SIGTERM", SIGXCPU: "SIGXCPU", SIGXFSZ: "SIGXFSZ", SIGSYS: "SIGSYS",
}

// Ends reports whether a signal is one by which a user, a shell or a scheduler
// ends a program.
func Ends(signal int32) bool {
	switch signal {
	case SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM, SIGXCPU:
		return true
	}
	return false
}

// ends keeps the first and the last few of many rows.
type ends[T any] struct {
	first, last []T
	next        int // in last, which is a ring
}

// kept at each end.
const kept = 32

func (e *ends[T]) add(row T) {
	switch {
	case len(e.first) < kept:
		e.first = append(e.first, row)
	case len(e.last) < kept:
		e.last = append(e.last, row)
	default:
		e.last[e.next] = row
		e.next = (e.next + 1) % kept
	}
}

func (e *ends[T]) all() []T {
	return slices.Concat(e.first, e.last[e.next:], e.last[:e.next])
}

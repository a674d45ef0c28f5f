// Package probe says what a probe is, and holds what all probes share: the
// processes of the run and reading /proc.
package probe

import (
	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/frames"
	"github.com/dptrace/dptrace/probes/redact"
)

// Tier is what a probe needs of the machine.
type Tier string

const (
	Hook   Tier = "hook"   // no privilege
	Kernel Tier = "kernel" // CAP_BPF and CAP_PERFMON: it loads eBPF programs
)

// Probe is one source of a trace's rows. It describes itself; probes.List names
// all there are.
type Probe struct {
	Name  string // its folder under probes/
	Doc   string // what it sees, in one line
	Tier  Tier
	Needs []Need // without which it gives nothing, or less
	// After names the probes that must have started before it: what they set in the
	// Recording it uses. Without one of them it does not start.
	After []string
	// Late is set in a probe to which nothing matters that a process does before it has
	// imported torch, which takes it ten times as long as all of these take to start:
	// where its tier was not demanded it starts while the target begins to run. Of the kernel
	// tier, and nobody's After.
	Late bool
	// Start makes the probe see all that happens from now on. The target runs
	// only when all probes have started that are not Late. An error says what the machine
	// refused, in one line; the recording goes on without the probe.
	Start func(r *Recording) (Watch, error)
}

// Rows takes rows of the tables of package traces. It is safe for several
// goroutines and never fails: what cannot be written is counted.
type Rows interface{ Append(row any) }

// Recording is what the probes of one recording share.
type Recording struct {
	Rows   Rows
	Procs  *Procs
	Target int32  // pid of the recorded command, as the recorder sees it
	Hook   string // folder on PYTHONPATH
	Spool  string // folder of the hook's rings
	// RingBytes is the room that each of them takes at most.
	RingBytes int64
	Bells     *Bells // what wakes the probe that is being started, or looks; nil: nothing does
	// KernelTypes is the kernel's BTF, opened once for all probes, and closed when the last
	// has started.
	KernelTypes *KernelBTF
	Secrets     *redact.Rules    // what is taken out of command lines
	Pythons     frames.Processes // set by the hook probe: for those that walk frames
	// Of the kernel tier, set by the probe that follows the processes; nil without it.
	Descendants *ebpf.Map // map procs of bpf/procs.h, for the other eBPF programs
	Tree        *Tree
	// SystemCalls is where a program goes that looks at the ends of system calls, as
	// number 0: the one that is attached there goes on to it. Set by the files probe.
	SystemCalls *ebpf.Map
}

// Need is something a probe wants from the machine. `dptrace doctor` tries it.
type Need struct {
	Name  string // what is needed, as the user would say it
	Gains string // what is lost without it: rules, columns of the report
	Try   func() Trial
}

// Trial is the outcome of a Need.
type Trial struct {
	Have   bool
	Detail string // what was found, or the error that was met
	Get    string // how to get it, if it is missing
}

// Package probe says what a probe is, and holds what all probes share: the
// processes of the run and reading /proc.
package probe

import "context"

// Probe is one source of a trace's rows. It describes itself; probes.List names
// all there are.
type Probe struct {
	Name  string // its folder under probes/
	Doc   string // what it sees, in one line
	Needs []Need // without which it gives nothing, or less
	// Run watches until ctx is done, then hands in what is left and returns.
	// Rows that are lost are counted in the trace; an error is one that ended
	// the probe early.
	Run func(ctx context.Context, r *Recording) error
}

// Rows takes rows of the tables of package traces. It is safe for several
// goroutines and never fails: what cannot be written is counted.
type Rows interface{ Append(row any) }

// Recording is what the probes of one recording share.
type Recording struct {
	Rows   Rows
	Procs  *Procs
	Target int32  // pid of the recorded command
	Hook   string // folder on PYTHONPATH
	Spool  string // folder of the hook's rings
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

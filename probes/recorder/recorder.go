// Package recorder is `dptrace record`: it starts the command, lets the probes
// watch it, and leaves a sealed trace and the command's exit code.
package recorder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"unicode"

	"github.com/dptrace/dptrace/probes/hook"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/probes/redact"
	"github.com/dptrace/dptrace/shim"
	"github.com/dptrace/dptrace/traces"
)

// Exit codes of `record` that are its own, as env, nohup and timeout use them.
const (
	ExitFailed        = 125
	ExitNotExecutable = 126
	ExitNotFound      = 127
	exitSignal        = 128
)

// Options say what to record and how.
type Options struct {
	Command []string
	Output  string // folder of the trace; "" makes a name in the working directory
	Version string // of dptrace
	Fsync   bool
	Tier    string        // auto: kernel where the machine allows it; hook; kernel: nothing less
	Digest  string        // which samples to take digests of: one of shim's
	Copies  bool          // the hook tells of copies to devices
	Secrets *redact.Rules // what is taken out of command lines
	Quiet   bool          // nothing on Stderr but failures
	// Hand gives stdin, stdout and what other descriptors this process was started with to the
	// target alone. Not for a process that has more to do than to record.
	Hand   bool
	Stderr io.Writer
	// Report prints the report of the trace, at the end. nil: there is none.
	Report func(w io.Writer, trace string) error
	// Beside is the command of ours that works on the trace while it is written; it
	// is given the trace's folder and the part's name besides. nil: there is none.
	Beside []string
}

// say tells the user something, where stdout is the command's. That nobody
// listens is no reason to fail. Names of the recorded program may be in it: what a
// terminal would act on is not written.
func (o Options) say(format string, args ...any) {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(fmt.Sprintf(format, args...), "?"))
	_, _ = fmt.Fprintln(o.Stderr, "dptrace: "+text)
}

// Failure is an error of the recorder, or of starting the command, and the
// code to exit with.
type Failure struct {
	Code int
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

func fail(err error) error { return &Failure{ExitFailed, err} }

// Run records one command and returns how it ended. An error is a *Failure. All that goes wrong once the command runs is
// counted in the trace and does not touch the command.
func Run(o Options) (how Ending, err error) {
	targets := o.handedOn()
	invoker, err := BecomeInvoker()
	if err != nil {
		return how, fail(err)
	}
	if invoker != nil && invoker.note != "" && !o.Quiet && firstRank(os.Getenv) {
		o.say("%s", invoker.note)
	}
	program, err := lookup(o.Command[0])
	if err != nil {
		return how, err
	}
	stale, err := stepAside(o, program)
	if err != nil {
		return how, err
	}
	cores := runtime.GOMAXPROCS(beside)
	collect := debug.SetGCPercent(-1) // until the target runs: what starting leaves behind is one collection's work

	out, err := create(o)
	if err != nil {
		return how, fail(invoker.because(err))
	}
	s, err := newSession(out.dir, out.Dir(), &o)
	if err != nil {
		out.discard()
		return how, fail(err)
	}
	signals := listen()
	t, err := start(program, o.Command, shim.Environ(environment(), s.hook, stale...), signals.ignored)
	if err != nil {
		s.remove()
		out.discard()
		return how, fail(err)
	}
	keep(targets)
	w := signals.witness() // before the target runs, which may signal its group as the first thing it does
	r := &recording{Options: o, out: out, session: s, target: t}
	err = r.begin()
	if err == nil {
		err = r.release(program)
	} else {
		t.abandon()
	}
	if err != nil { // what was demanded is missing, or it could not be executed
		t.wait() // the witness ends with us
		s.remove()
		out.discard()
		return how, err
	}
	r.accompanied(targets)
	forwarding := signals.forward(t, w)
	how = t.wait()
	forwarding.stop()
	closing := signals.whileClosing()
	r.end(how)
	closing.stop()
	debug.SetGCPercent(collect)
	runtime.GOMAXPROCS(min(cores, 2))
	signals.restore() // from here on Ctrl-C ends us as any other program
	r.beside.sealed()
	r.tell()
	r.relay()
	return how, nil
}

// release lets the target execute its program, and the probes watch it.
func (r *recording) release(program string) error {
	if err := r.target.release(program); err != nil {
		r.loop.Discard()
		return err
	}
	r.loop.Later(r.spare)
	r.watch()
	return nil
}

// spare gives back what starting took.
func (r *recording) spare() {
	r.shared.KernelTypes.Close()
	debug.SetGCPercent(sparing)
	if r.tier == probe.Kernel {
		go debug.FreeOSMemory() // what eBPF objects are read into
	}
}

// beside is how many Ps we have while the target runs: the cores are the
// training's. And where a second P is idle, Go's sysmon wakes up some sixty times
// for each of our sleeps until it has taken back the first (retake in
// runtime/proc.go, Go 1.26).
const beside = 1

// sparing is a GOGC for who allocates little and shall hold little: memory beside
// a training is dearer than a collection now and then.
const sparing = 50

// recording is what runs beside the target.
type recording struct {
	Options
	out     *output
	session *session
	target  *target
	procs   *probe.Procs
	shared  *probe.Recording
	loop    *probe.Loop // of the probes; nil: it does not run
	left    int         // processes that were still running at the end
	costs   costs
	tier    probe.Tier // the highest of which a probe runs
	started map[string]bool
	refused []refusal  // probes of a higher one
	beside  *companion // nil: none
}

// accompanied lets go of what is the target's and starts what works beside us.
// That it cannot be is no reason to fail.
func (r *recording) accompanied(targets []int) {
	if r.Hand {
		letGo(targets)
	}
	if r.Beside == nil {
		return
	}
	var err error
	if r.beside, err = accompany(r.Beside, r.out.dir, filepath.Base(r.out.Dir())); err != nil {
		r.say("%v", err)
	}
}

// relay says what our companion has to tell: with Quiet only if it has failed.
func (r *recording) relay() {
	if r.beside == nil {
		return
	}
	if lines, failed := r.beside.ended(); failed || !r.Quiet && firstRank(os.Getenv) {
		for _, line := range lines {
			r.say("%s", line)
		}
	}
}

// begin starts the probes; the target waits meanwhile. An error is a *Failure:
// the tier that was demanded cannot be had.
func (r *recording) begin() error {
	r.procs = probe.NewProcs()
	loop, err := probe.NewLoop()
	if err != nil {
		return fail(err)
	}
	r.loop = loop
	var rows probe.Rows = r.out
	if !r.Quiet && firstRank(os.Getenv) {
		rows = newForecast(r.out, r.say)
	}
	r.shared = &probe.Recording{Rows: rows, Procs: r.procs, Target: int32(r.target.pid), Bells: loop.Bells,
		Hook: r.session.hook, Spool: r.session.spool, RingBytes: hook.RingBytes, KernelTypes: &probe.KernelBTF{}, Secrets: r.Secrets}
	st, err := procfs.ReadStat(r.shared.Target)
	if err == nil {
		r.procs.Of(r.shared.Target, st.StartTicks) // number 1
	}
	if err := r.startProbes(); err != nil {
		loop.Discard()
		return err
	}
	r.writeBegin()
	loop.Chores = r.keeper()
	r.costs.started(r.target.pid)
	return nil
}

// watch lets the probes look for as long as the target runs.
func (r *recording) watch() {
	go r.loop.Run(func(probe string, err error) {
		r.out.Append(traces.Lost{Head: now(), Source: probe, Count: 1, Reason: err.Error()})
	})
}

// end completes the trace.
func (r *recording) end(how Ending) {
	e := traces.Exit{Head: now(), ExitCode: int32(how.ExitStatus()), Source: "wait"}
	if how.Signaled() {
		e.ExitCode, e.Signal = -1, int32(how.Signal())
	}
	if p, ok := r.procs.ByPid(int32(r.target.pid)); ok {
		r.procs.Exit(r.out, p.Pid, p.Start, e)
	}
	r.loop.Ended()
	r.left = alive(r.procs)
	r.writeEnd(how)
	if err := r.out.Seal(); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // one for each table
		r.say("the trace is not complete: %s", first)
	}
	if r.left == 0 {
		r.session.remove()
	} else { // they may still import the hook; a later recording cleans up
		r.session.unlock()
	}
}

func alive(procs *probe.Procs) (n int) {
	for _, p := range procs.Alive() {
		if procfs.Alive(p.Pid, p.Start) {
			n++
		}
	}
	return n
}

// tell says on stderr where the trace is and what is in it.
func (r *recording) tell() {
	if r.Quiet || !firstRank(os.Getenv) {
		return
	}
	torch, unhooked := r.procs.Count()
	switch {
	case torch == 0 && unhooked > 0:
		r.say("no Python that dptrace could look into imported torch: there are no loaders to judge")
	case torch == 0:
		r.say("no Python process of this run imported torch: there are no loaders to judge")
	}
	if refused := tellRefusals(r.tier, r.refused); refused != "" && r.Report == nil { // the report has it
		r.say("tier %s: %s", r.tier, refused)
	}
	if r.left > 0 {
		r.say("%d processes live on; what they do from now on is not recorded", r.left)
	}
	if r.Report != nil {
		if err := r.Report(r.Stderr, r.out.dir); err != nil {
			r.say("report: %v", err)
		}
	}
	r.say("recorded to %s", r.out.dir)
}

// AsFailure gives the exit code of an error of Run.
func AsFailure(err error) (code int, ok bool) {
	var f *Failure
	if errors.As(err, &f) {
		return f.Code, true
	}
	return 0, false
}

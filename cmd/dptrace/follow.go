package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/export/otlp"
	"github.com/dptrace/dptrace/traces"
)

// liveOTLP are the flags of record that send while it runs.
type liveOTLP struct {
	on     bool
	sample float64
}

func (l *liveOTLP) flags(f *pflag.FlagSet) {
	f.BoolVar(&l.on, "otlp", false,
		"send it to OpenTelemetry while it runs, where OTEL_EXPORTER_OTLP_ENDPOINT says: from a process of its own, at nice 19 (default false)")
	f.Float64Var(&l.sample, "otlp-sample", 1, "part of the batches to send; slow ones are sent always")
}

// followCommand is the hidden command that record --otlp starts beside itself:
// `dptrace followCommand SAMPLE FOLDER PART`.
const followCommand = "__otlp"

// command is what record starts beside itself; nil: nothing.
func (l *liveOTLP) command() ([]string, error) {
	if !l.on {
		return nil, nil
	}
	if l.sample < 0 || l.sample > 1 {
		return nil, fmt.Errorf("record: --otlp-sample %g: it is a part of the batches, from 0 to 1", l.sample)
	}
	if err := otlp.Check(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return []string{followCommand, strconv.FormatFloat(l.sample, 'g', -1, 64)}, nil
}

func newFollowOTLP() *cobra.Command {
	return &cobra.Command{
		Use:                followCommand,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 3 {
				return errors.New("this command is for dptrace itself")
			}
			sample, err := strconv.ParseFloat(args[0], 64)
			if err != nil {
				return err
			}
			return follow(cmd.OutOrStdout(), args[1], args[2], otlp.Options{Sample: sample, Patience: lastPatience, Version: version()})
		},
	}
}

const (
	// looks at the trace come at least so far apart, and so far that they take this
	// part of a core's time: the longer the trace, the rarer they are.
	lookEvery = 5 * time.Second
	lookShare = 0.02
	// lastPatience is how long to wait, when the run has ended, for an endpoint that
	// does not answer, and lastTime for one that is slow: record ends after this.
	lastPatience = 10 * time.Second
	lastTime     = time.Minute
)

// follow sends a run while it is recorded, until stdin ends.
func follow(stdout io.Writer, folder, part string, o otlp.Options) error {
	// They are for the program; the recorder tells when it has ended.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the recorder
		close(ended)
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f, err := otlp.NewFollower(ctx, o)
	if err != nil {
		<-ended
		return err
	}
	for wait := lookEvery; ; {
		select {
		case <-time.After(wait):
			before := ownCPU()
			_ = lookAt(f, folder, part, false) // what could not be read or sent is, the next time
			wait = max(lookEvery, time.Duration(float64(ownCPU()-before)/lookShare))
			continue
		case <-ended:
		}
		break
	}
	stop := time.AfterFunc(lastTime, cancel)
	defer stop.Stop()
	err = lookAt(f, folder, part, true)
	told := f.Close(ctx)
	for _, line := range told.Lines() {
		fmt.Fprintln(stdout, "otlp:", line)
	}
	if err != nil {
		fmt.Fprintln(stdout, "otlp:", err)
	}
	if err != nil || !told.Complete() {
		fmt.Fprintf(stdout, "otlp: the trace has it all: dptrace export otlp %s sends it\n", folder)
		return &exit{code: exitUndelivered}
	}
	return nil
}

// lookAt sends what there is more of the trace by now.
func lookAt(f *otlp.Follower, folder, part string, last bool) error {
	run, err := traces.Open(folder)
	if err != nil {
		return err
	}
	run.Keep(slices.DeleteFunc(slices.Clone(run.Parts), func(p *traces.Part) bool { return p.Name != part }))
	if len(run.Parts) == 0 {
		return fmt.Errorf("%s has no part %s", folder, part)
	}
	rules := analyze.Rules
	if !last {
		rules = nil // nothing can be told before the end
	}
	result, err := analyze.Run(run, rules, otlp.Sources...)
	if err != nil {
		return err
	}
	return guarded("otlp", func() error { return f.Send(result, last) })
}

// ownCPU is the CPU time of this process so far.
func ownCPU() time.Duration {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

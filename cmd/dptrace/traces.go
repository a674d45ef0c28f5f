package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/probes/recorder"
	"github.com/dptrace/dptrace/traces"
)

// ownTraces are those that record has named: the names begin with the time.
const ownTraces = "dptrace-*.dptrace"

// oneRunFlag adds --one-run to a command that reads traces.
func oneRunFlag(cmd *cobra.Command, oneRun *bool) {
	cmd.Flags().BoolVar(oneRun, "one-run", false,
		"the traces are parts of one run, whatever their run ids say: ranks that were started by hand (default false)")
}

// named are the traces that a command was given: without argument the newest of
// this folder, with those of the same run.
func named(args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	newest, err := newestTrace(".")
	if err != nil {
		return nil, err
	}
	return traces.Siblings(newest, ownTraces)
}

// newestTrace is the newest trace that record has named in a folder.
func newestTrace(folder string) (string, error) {
	names, err := filepath.Glob(filepath.Join(folder, ownTraces))
	if err != nil {
		return "", err
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return name, nil
		}
	}
	return "", errors.New("no dptrace-*.dptrace in this folder: name a trace, or record one with dptrace record -- python train.py")
}

// openRun opens traces that are parts of one run. Different runs are an error,
// which names them: ranks of one would be compared with those of another. Of a
// run that was recorded several times under one id the last time counts.
func openRun(stderr io.Writer, paths []string, oneRun bool) (*traces.Run, error) {
	run, err := traces.Open(paths...)
	if err == nil && slices.ContainsFunc(run.Parts, func(p *traces.Part) bool { return !p.Sealed }) {
		salvage(stderr, paths)
		run, err = traces.Open(paths...)
	}
	if err != nil {
		return nil, &exit{code: exitIncomplete, err: err}
	}
	recordings := run.Recordings()
	if oneRun || len(recordings) == 1 {
		return run, nil
	}
	last := recordings[len(recordings)-1]
	for _, parts := range recordings {
		if parts[0].RunID != last[0].RunID {
			return nil, severalRuns(recordings)
		}
	}
	tell(
		stderr,
		fmt.Sprintf(
			"run %s was recorded %d times, and these did not overlap; this is the last, of %s",
			last[0].RunID,
			len(recordings),
			began(last[0]),
		),
	)
	run.Keep(last)
	return run, nil
}

// salvage adds to traces that were cut what their recorders, that have died, left in
// their rings.
func salvage(stderr io.Writer, paths []string) {
	for _, path := range paths {
		parts, err := recorder.Salvage(path)
		for _, p := range parts {
			const added = "the recorder of %s died; %d records of %d processes that it had not read were added to the trace"
			tell(stderr, fmt.Sprintf(added, p.Part, p.Records, p.Processes))
		}
		if err != nil {
			warn(stderr, err.Error())
		}
	}
}

// severalRuns names the runs that traces are of.
func severalRuns(recordings [][]*traces.Part) error {
	var b strings.Builder
	fmt.Fprintf(&b, "these traces are of %d runs, not parts of one; name those of one run:", len(recordings))
	for _, parts := range recordings {
		var names []string
		for _, p := range parts {
			if !slices.Contains(names, p.Trace) {
				names = append(names, p.Trace)
			}
		}
		slices.Sort(names)
		const most = 4
		if n := len(names) - most; n > 0 {
			names = append(names[:most], fmt.Sprintf("and %d more", n))
		}
		fmt.Fprintf(&b, "\n  run %s, of %s: %s", parts[0].RunID, began(parts[0]), strings.Join(names, " "))
	}
	b.WriteString("\nif they are ranks of one run that were started by hand, add --one-run")
	return errors.New(b.String())
}

func began(p *traces.Part) string {
	if p.Started == 0 {
		return "an unknown time"
	}
	return time.Unix(0, p.Started).Format("2006-01-02 15:04:05")
}

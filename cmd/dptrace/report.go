package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/report"
	"github.com/dptrace/dptrace/traces"
)

// Exit codes of report besides 0 and exitUsage.
const (
	exitFindings   = 1
	exitIncomplete = 3 // the trace is unreadable, or was cut or damaged
)

// formats of a report.
var formats = []string{"text", "json"}

// failOn are the values of --fail-on; at "never" no finding fails.
var failOn = map[string]finding.Certainty{
	"proven": finding.Proven, "likely": finding.Likely, "note": finding.Note, "never": finding.Proven + 1,
}

func newReport() *cobra.Command {
	var format, threshold string
	cmd := &cobra.Command{
		Use:   "report [flags] [TRACE...]",
		Short: "Print what is wrong with the data pipeline of a recorded training",
		Long: `Judges a trace and prints what was found, what is clean and what could not be
checked. Several traces are the parts of one run, recorded on several nodes.
Without argument it takes the newest dptrace-*.dptrace of this folder.

Exit code: 0 nothing at or above --fail-on; 1 there is; 2 wrong usage; 3 the
trace is unreadable or incomplete. Findings win over 3.`,
		Example: `  dptrace report
  dptrace report --format json --fail-on likely run.dptrace`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(formats, format) {
				return fmt.Errorf("report: --format %q: this build has %s", format, strings.Join(formats, " and "))
			}
			atLeast, ok := failOn[threshold]
			if !ok {
				return fmt.Errorf("report: --fail-on %q: use proven, likely, note or never", threshold)
			}
			if len(args) == 0 {
				newest, err := newestTrace(".")
				if err != nil {
					return fmt.Errorf("report: %w", err)
				}
				args = []string{newest}
			}
			return judge(cmd.OutOrStdout(), cmd.ErrOrStderr(), args, format, atLeast)
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", "text", "form of the report: "+strings.Join(formats, " or "))
	f.StringVar(&threshold, "fail-on", "proven", "exit with 1 at findings of this certainty or above: proven, likely, note or never")
	for flag, values := range map[string][]string{"format": formats, "fail-on": slices.Sorted(maps.Keys(failOn))} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

// judge prints the report of a run to stdout, warnings to stderr; its error
// carries the exit code.
func judge(stdout, stderr io.Writer, paths []string, format string, atLeast finding.Certainty) error {
	result, err := analyzed(paths)
	if err != nil {
		return &exit{exitIncomplete, fmt.Errorf("report: %w", err)}
	}
	if format == "json" {
		err = report.JSON(stdout, result)
	} else {
		err = printText(stdout, result)
	}
	if err != nil {
		return &exit{exitIncomplete, fmt.Errorf("report: %w", err)}
	}
	incomplete := report.Incomplete(result)
	if format != "text" {
		for _, line := range incomplete {
			fmt.Fprintln(stderr, "dptrace: warning:", line)
		}
	}
	switch {
	case report.Fails(result, atLeast):
		return &exit{code: exitFindings}
	case len(incomplete) > 0:
		return &exit{code: exitIncomplete}
	}
	return nil
}

func analyzed(paths []string) (*analyze.Result, error) {
	run, err := traces.Open(paths...)
	if err != nil {
		return nil, err
	}
	return analyze.Run(run)
}

// printReport prints the report of a trace at the end of record.
func printReport(w io.Writer, trace string) error {
	result, err := analyzed([]string{trace})
	if err != nil {
		return err
	}
	fmt.Fprintln(w) // apart from what the program has printed
	return printText(w, result)
}

// printText uses colour and characters beyond ASCII only where they can be
// shown: on a terminal, and as NO_COLOR, TERM and the locale say.
func printText(w io.Writer, r *analyze.Result) error {
	var o report.Options
	if columns, ok := terminal(w); ok {
		o.Width = min(max(columns, 60), 120)
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		o.Unicode = utf8Locale(os.Getenv)
	}
	return report.Text(w, r, o)
}

// terminal tells whether w is one, and how wide.
func terminal(w io.Writer) (columns int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile {
		return 0, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}

// utf8Locale reads the variables in the order in which setlocale does.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// newestTrace is the newest trace that record has named in a folder: its name
// begins with the time.
func newestTrace(folder string) (string, error) {
	names, err := filepath.Glob(filepath.Join(folder, "dptrace-*.dptrace"))
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

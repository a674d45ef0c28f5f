package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/accept"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/report"
	"github.com/dptrace/dptrace/traces"
)

// Exit codes of report besides 0 and exitUsage.
const (
	exitFindings   = 1
	exitIncomplete = 3 // the trace is unreadable, or not all was seen: cut, damaged, lost, a torch process without the hook
)

// failOn are the values of --fail-on; at "never" no finding fails.
var failOn = map[string]finding.Certainty{
	"proven": finding.Proven, "likely": finding.Likely, "note": finding.Note, "never": finding.Proven + 1,
}

func newReport() *cobra.Command {
	var o reportOptions
	var quiet bool
	var threshold, format string
	formats := report.FormatNames()
	cmd := &cobra.Command{
		Use:   "report [flags] [TRACE...]",
		Short: "Print what is wrong with the data pipeline of a recorded training",
		Long: `Judges a trace and prints what was found, what is clean and what could not be
checked. Several traces are the parts of one run, recorded on several nodes or
for each rank. Without argument it takes the newest dptrace-*.dptrace of this
folder and the others of the same run.

dptrace.toml, of this folder or else of the one in which the run was recorded,
accepts findings by rule and place, each with a reason:

  [[accept]]
  rule = "order-repeats"
  at = "train.py:88"      # as the report prints it; without :88 all of the file
  reason = "a curriculum: the order is the point"

Accepted findings are listed apart and do not fail.

Exit code: 0 nothing at or above --fail-on; 1 there is; 2 wrong usage; 3 the
trace is unreadable, or the recording incomplete: cut, damaged, rows lost, a hook
that gave up, a process with torch and without the hook, or no Python with it.
Findings win over 3. 130 is Ctrl-C, 143 SIGTERM.`,
		Example: `  dptrace report
  dptrace report --format json --fail-on likely run.dptrace
  dptrace report rank-*.dptrace`,
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.IndexFunc(report.Formats, func(f report.Format) bool { return f.Name == format })
			if i < 0 {
				return fmt.Errorf("report: --format %q: this build has %s", format, strings.Join(formats, " and "))
			}
			o.format = report.Formats[i]
			var ok bool
			if o.atLeast, ok = failOn[threshold]; !ok {
				return fmt.Errorf("report: --fail-on %q: use proven, likely, note or never", threshold)
			}
			paths, err := named(args)
			if err == nil {
				w := beginWork(cmd.ErrOrStderr(), quiet)
				defer w.end()
				err = judge(cmd.OutOrStdout(), w, paths, o)
			}
			return prefixed("report", err)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.verbose, "verbose", "v", false, "every check with its reason, and every piece of evidence (default false)")
	f.StringVar(&format, "format", formats[0], "form of the report: "+strings.Join(formats, " or "))
	f.StringVar(&threshold, "fail-on", "proven", "exit with 1 at findings of this certainty or above: proven, likely, note or never")
	f.StringVar(&o.config, "config", "", "file that accepts findings (default dptrace.toml here, or where the run was recorded)")
	oneRunFlag(cmd, &o.oneRun)
	quietFlag(cmd, &quiet)
	for flag, values := range map[string][]string{"format": formats, "fail-on": slices.Sorted(maps.Keys(failOn))} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

// reportOptions are the flags of report.
type reportOptions struct {
	format  report.Format
	verbose bool
	atLeast finding.Certainty
	config  string
	oneRun  bool
}

// judge prints the report of a run to stdout, warnings to stderr; its error
// carries the exit code.
func judge(stdout io.Writer, job *work, paths []string, o reportOptions) error {
	run, err := openRun(job.stderr, paths, o.oneRun)
	if err != nil {
		return err
	}
	job.reading(run.Progress())
	accepted, err := readAccepted(o.config, run)
	if err != nil {
		return err
	}
	result, err := analyzed(run, accepted)
	if err != nil {
		return &exit{code: exitIncomplete, err: err}
	}
	job.done()
	options := look(stdout)
	options.Verbose = o.verbose
	if err := guarded("report as "+o.format.Name, func() error { return o.format.Write(stdout, result, options) }); err != nil {
		return &exit{code: exitIncomplete, err: err}
	}
	incomplete := report.Incomplete(result)
	if !o.format.Warns {
		for _, line := range slices.Concat(incomplete, report.Unused(result)) {
			warn(job.stderr, line)
		}
	}
	switch {
	case report.Fails(result, o.atLeast):
		return &exit{code: exitFindings}
	case len(incomplete) > 0:
		return &exit{code: exitIncomplete}
	}
	return nil
}

// guarded makes an error of a panic: what a trace held that this form of it was
// not made for ends nothing else.
func guarded(what string, write func() error) (err error) {
	if failed := collect.Guard(what, func() { err = write() }); failed != nil {
		return failed
	}
	return err
}

// analyzed judges a run and marks what is accepted.
func analyzed(run *traces.Run, accepted []accept.Entry) (*analyze.Result, error) {
	result, err := analyze.Run(run, analyze.Rules)
	if err != nil {
		return nil, err
	}
	result.Unused = accept.Apply(accepted, result.Findings, workingFolders(run)[0])
	return result, nil
}

// printReport prints the report of a trace at the end of record. What is wrong
// with dptrace.toml is said below it: nothing is accepted then.
func printReport(w io.Writer, trace string) error {
	run, err := openRun(w, []string{trace}, false)
	if err != nil {
		return err
	}
	accepted, wrong := readAccepted("", run)
	result, err := analyzed(run, accepted)
	if err != nil {
		return err
	}
	fmt.Fprintln(w) // apart from what the program has printed
	return errors.Join(guarded("report", func() error { return report.Text(w, result, look(w)) }), wrong)
}

// look is how a report may look: colour and characters beyond ASCII only where
// they can be shown, on a terminal, and as NO_COLOR, TERM and the locale say.
func look(w io.Writer) report.Options {
	var o report.Options
	if columns, ok := terminal(w); ok {
		o.Width = min(max(columns, 60), 120)
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		o.Unicode = utf8Locale(os.Getenv)
	}
	return o
}

// terminal reports whether a stream is one, and how wide.
func terminal(stream any) (columns int, ok bool) {
	f, isFile := stream.(*os.File)
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

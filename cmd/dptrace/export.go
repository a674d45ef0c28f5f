package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/export"
	"github.com/dptrace/dptrace/analyze/report"
)

func newExport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a trace in the form of another tool",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("export: no form %q: this build has %s", args[0], strings.Join(exporterNames(), ", "))
			}
			return fmt.Errorf("export: which form? this build has %s", strings.Join(exporterNames(), ", "))
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Args never lets it run; cobra would print help and succeed
	}
	for _, e := range export.List {
		cmd.AddCommand(newExporter(e))
	}
	cmd.AddCommand(newExportOTLP())
	return cmd
}

func exporterNames() []string {
	var names []string
	for _, e := range export.List {
		names = append(names, e.Name)
	}
	for _, s := range export.Senders {
		names = append(names, s.Name)
	}
	return names
}

func newExporter(e export.Exporter) *cobra.Command {
	var output string
	var oneRun, quiet bool
	cmd := &cobra.Command{
		Use:   e.Name + " [flags] [TRACE...]",
		Short: e.Doc,
		Long: e.Long + `

Several traces are the parts of one run, recorded on several nodes or for each
rank. Without argument it takes the newest dptrace-*.dptrace of this folder and
the others of the same run.

Exit code: 0 written; 2 wrong usage; 3 the trace is unreadable (nothing is
written) or incomplete (what is there is written); 130 Ctrl-C, 143 SIGTERM
(nothing is written: a file has its name only when it is whole).`,
		Example: "  dptrace export " + e.Name + " night.dptrace\n  " + strings.ReplaceAll(e.Open, "FILE", "night"+e.Suffix),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := named(args)
			if err == nil {
				w := beginWork(cmd.ErrOrStderr(), quiet)
				defer w.end()
				err = write(cmd.OutOrStdout(), w, e, output, paths, oneRun)
			}
			return prefixed("export", err)
		},
	}
	oneRunFlag(cmd, &oneRun)
	quietFlag(cmd, &quiet)
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write; - is stdout (default the trace's name with "+e.Suffix+" here)")
	return cmd
}

// write exports a run to a file, which then is whole: it has its name only
// when it is done.
func write(stdout io.Writer, job *work, e export.Exporter, output string, paths []string, oneRun bool) error {
	run, err := openRun(job.stderr, paths, oneRun)
	if err != nil {
		return err
	}
	job.reading(run.Progress())
	result, err := analyze.Run(run, analyze.Rules, e.Sources...)
	if err != nil {
		return &exit{code: exitIncomplete, err: err}
	}
	if output == "" {
		output = exportName(paths[0], e.Suffix)
	}
	if output == "-" {
		if _, ok := terminal(stdout); ok {
			return errors.New("this is no text for a terminal: name a file with -o, or redirect stdout")
		}
		err = guarded("export "+e.Name, func() error { return e.Write(job.writing("stdout", stdout), result) })
	} else {
		err = job.file(output, func(w io.Writer) error {
			return guarded("export "+e.Name, func() error { return e.Write(w, result) })
		})
	}
	if err != nil {
		return &exit{code: exitIncomplete, err: err}
	}
	job.done()
	if output != "-" && !job.quiet {
		tell(job.stderr, fmt.Sprintf("wrote %s; look at it with %s", output, strings.ReplaceAll(e.Open, "FILE", output)))
	}
	incomplete := report.Incomplete(result)
	for _, line := range incomplete {
		warn(job.stderr, line)
	}
	if len(incomplete) > 0 {
		return &exit{code: exitIncomplete}
	}
	return nil
}

// exportName is the trace's name with another suffix, in the working directory.
func exportName(trace, suffix string) string {
	if absolute, err := filepath.Abs(trace); err == nil { // "." has no name
		trace = absolute
	}
	return strings.TrimSuffix(filepath.Base(trace), ".dptrace") + suffix
}

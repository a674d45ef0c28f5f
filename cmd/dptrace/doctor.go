package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/probes"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/recorder"
)

func newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Try what recording needs on this machine",
		Long: `Tries each thing that recording needs, and says what is there, what is missing,
how to get it and what is lost without it. Nothing is believed by its version:
Python is started with the hook in it, torch iterates over a small DataLoader,
an eBPF program is loaded, attached to a tracepoint and detached.

The interpreter is $DPTRACE_PYTHON (default python3). Under sudo it is tried as
record would run it: as the user who called sudo.`,
		Example: `  dptrace doctor
  DPTRACE_PYTHON=.venv/bin/python dptrace doctor
  sudo dptrace doctor`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := recorder.BecomeInvoker(); err != nil {
				return &exit{code: recorder.ExitFailed, err: fmt.Errorf("doctor: %w", err)}
			}
			var w strings.Builder
			try(&w, "record: the trace, and the command's exit code, signals and streams passed through", []probe.Need{workingFolder})
			for _, p := range probes.List {
				try(&w, fmt.Sprintf("%s (%s tier): %s", p.Name, p.Tier, p.Doc), p.Needs)
			}
			_, err := io.WriteString(cmd.OutOrStdout(), w.String())
			return err
		},
	}
}

// try writes one section. What is lost is said once, if it is the same for
// several needs.
func try(w *strings.Builder, heading string, needs []probe.Need) {
	fmt.Fprintln(w, heading)
	lost := ""
	for _, n := range needs {
		t := n.Try()
		if t.Have {
			fmt.Fprintf(w, "  have     %s: %s\n", n.Name, t.Detail)
			continue
		}
		fmt.Fprintf(w, "  missing  %s: %s\n", n.Name, strings.TrimSpace(t.Detail))
		fmt.Fprintf(w, "           get it: %s\n", strings.ReplaceAll(t.Get, "\n", "\n                   "))
		if n.Gains != lost {
			fmt.Fprintf(w, "           lost without it: %s\n", n.Gains)
			lost = n.Gains
		}
	}
	if g := gains(needs); g != "" && lost == "" {
		fmt.Fprintf(w, "  gives    %s\n", g)
	}
}

// gains is what a section gives as a whole: all its needs gain the same.
func gains(needs []probe.Need) string {
	if len(needs) < 2 {
		return ""
	}
	for _, n := range needs {
		if n.Gains != needs[0].Gains {
			return ""
		}
	}
	return needs[0].Gains
}

var workingFolder = probe.Need{
	Name:  "a working folder that can be written to",
	Gains: "record without -o",
	Try: func() probe.Trial {
		dir, err := os.MkdirTemp(".", "dptrace-doctor-")
		if err != nil {
			return probe.Trial{Detail: err.Error(), Get: "change to another folder, or name one with record -o"}
		}
		if err := os.Remove(dir); err != nil {
			return probe.Trial{Detail: err.Error(), Get: "name another folder with record -o"}
		}
		return probe.Trial{Have: true, Detail: "here"}
	},
}

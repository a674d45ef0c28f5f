package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/probes"
	"github.com/dptrace/dptrace/probes/probe"
)

func newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Try what recording needs on this machine",
		Long: `Tries each thing that recording needs, and says what is there, what is missing,
how to get it and what is lost without it. Nothing is believed by its version:
Python is started with the hook in it, torch iterates over a small DataLoader.

The interpreter is $DPTRACE_PYTHON (default python3).`,
		Example: `  dptrace doctor
  DPTRACE_PYTHON=.venv/bin/python dptrace doctor`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var w strings.Builder
			try(&w, "record", "the trace, and the command's exit code, signals and streams passed through", []probe.Need{workingFolder})
			for _, p := range probes.List {
				try(&w, p.Name, p.Doc, p.Needs)
			}
			_, err := io.WriteString(cmd.OutOrStdout(), w.String())
			return err
		},
	}
}

func try(w *strings.Builder, name, doc string, needs []probe.Need) {
	fmt.Fprintf(w, "%s: %s\n", name, doc)
	for _, n := range needs {
		t := n.Try()
		if t.Have {
			fmt.Fprintf(w, "  have     %s: %s\n", n.Name, t.Detail)
			continue
		}
		fmt.Fprintf(w, "  missing  %s: %s\n           get it: %s\n           lost without it: %s\n", n.Name, strings.TrimSpace(t.Detail), t.Get, n.Gains)
	}
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

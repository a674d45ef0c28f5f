package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/probes/recorder"
)

func newRecord() *cobra.Command {
	var o recorder.Options
	var tier string
	cmd := &cobra.Command{
		Use:   "record [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a training and record what its data loaders do",
		Long: `Runs the command with dptrace's Python hook in it and writes a trace. Exit code,
signals, terminal and standard streams are the command's own; what dptrace says
goes to stderr.

Exit code: the command's, 128+n if signal n ended it; 127 not found,
126 not executable, 125 if recording could not begin.`,
		Example: `  dptrace record -- python train.py --epochs 3
  dptrace record -o run.dptrace -- torchrun --nproc-per-node 2 train.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("record: which command? dptrace record -- python train.py")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if tier != "auto" && tier != "hook" {
				return fmt.Errorf("record: --tier %q: this build has auto and hook", tier)
			}
			o.Command, o.Version, o.Stderr, o.Report = args, version(), os.Stderr, printReport
			code, err := recorder.Run(cmd.Context(), o)
			if err != nil {
				if c, ok := recorder.AsFailure(err); ok {
					return &exit{c, err}
				}
				return &exit{recorder.ExitFailed, err}
			}
			if code != 0 {
				return &exit{code: code}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows the command is the command's
	f.StringVarP(&o.Output, "output", "o", "", "folder of the trace (default dptrace-TIME-PID.dptrace here)")
	f.StringVar(&tier, "tier", "auto", "what to watch with: auto or hook; both need no privileges")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print no report and no notes at the end (default false)")
	f.BoolVar(&o.Fsync, "fsync", false, "sync every batch to the disk: the trace survives a node that goes down (default false)")
	return cmd
}

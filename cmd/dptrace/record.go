package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/probes/recorder"
	"github.com/dptrace/dptrace/probes/redact"
	"github.com/dptrace/dptrace/shim"
)

var (
	tiers   = []string{recorder.TierAuto, recorder.TierHook, recorder.TierKernel}
	digests = []string{shim.DigestBudget, shim.DigestFull, shim.DigestOff}
)

func newRecord() *cobra.Command {
	o := recorder.Options{Hand: true}
	var secrets []string
	var live liveOTLP
	cmd := &cobra.Command{
		Use:   "record [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a training and record what its data loaders do",
		Long: `Runs the command with dptrace's Python hook in it and writes a trace. Exit code,
signals, terminal and standard streams are the command's own; what dptrace says
goes to stderr.

With CAP_BPF and CAP_PERFMON it also watches from the kernel (eBPF). Under sudo
the command runs as the user who called sudo, and the trace is theirs; only the
recorder keeps these capabilities. ` + "`dptrace doctor`" + ` says what this machine allows.

What looks like a secret on a command line (--password X, HF_TOKEN=..., user:password@
in a URL) is not written to the trace: [redacted] stands there. --redact adds to it.

Exit code: the command's; if a signal ended it dptrace ends by that signal, too
(a shell shows 128+n). 127 not found, 126 not executable, 125 if recording could not begin, 4 if the tier that was
demanded was refused. In these four cases the command has not run.`,
		Example: `  dptrace record -- python train.py --epochs 3
  dptrace record -o run.dptrace -- torchrun --nproc-per-node 2 train.py
  sudo dptrace record --tier kernel -- python train.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("record: which command? dptrace record -- python train.py")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(tiers, o.Tier) {
				return fmt.Errorf("record: --tier %q: it is one of %s", o.Tier, strings.Join(tiers, ", "))
			}
			if !slices.Contains(digests, o.Digest) {
				return fmt.Errorf("record: --digest %q: it is one of %s", o.Digest, strings.Join(digests, ", "))
			}
			var err error
			if o.Secrets, err = redact.Parse(secrets); err != nil {
				return fmt.Errorf("record: %w", err)
			}
			if o.Beside, err = live.command(); err != nil {
				return err
			}
			o.Command, o.Version, o.Stderr, o.Report = args, version(), os.Stderr, printReport
			how, err := recorder.Run(o)
			if err != nil {
				if c, ok := recorder.AsFailure(err); ok {
					return &exit{code: c, err: err}
				}
				return &exit{code: recorder.ExitFailed, err: err}
			}
			if code := how.Code(); code != 0 {
				return &exit{code: code, signal: how.Signal()}
			}
			return nil
		},
	}
	recordFlags(cmd, &o, &secrets)
	live.flags(cmd.Flags())
	return cmd
}

func recordFlags(cmd *cobra.Command, o *recorder.Options, secrets *[]string) {
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows the command is the command's
	f.StringVarP(&o.Output, "output", "o", "", "folder of the trace (default dptrace-TIME-PID.dptrace here)")
	f.StringVar(&o.Tier, "tier", recorder.TierAuto,
		"what to watch with: hook needs no privilege, kernel adds eBPF or fails, auto adds it where it may")
	f.StringVar(&o.Digest, "digest", shim.DigestBudget,
		"samples whose content to compare: budget takes as many as 1 % of the time allows, full all of them, off none")
	f.BoolVar(&o.Copies, "copies", false,
		"tell of copies to a device without the kernel tier: those asked for by Tensor.to, cuda and copy_ (default false)")
	f.StringArrayVar(secrets, "redact", nil,
		"more to take out of command lines (a regular expression; may be given again), besides what looks like a secret; none takes nothing out")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print no report and no notes at the end (default false)")
	f.BoolVar(&o.Fsync, "fsync", false, "sync every batch to the disk: the trace survives a node that goes down (default false)")
}

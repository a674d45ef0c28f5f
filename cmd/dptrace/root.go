package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/probes/recorder"
)

// exitUsage is the exit code of a command that was called wrongly.
const exitUsage = 2

// exit ends a command with a code of its own; a nil err has been told already.
type exit struct {
	code   int
	signal syscall.Signal // above 0: by this signal, and the code only if that is not possible
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// prefixed says which command an error is of; its exit code stays.
func prefixed(command string, err error) error {
	var e *exit
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return fmt.Errorf("%s: %w", command, err)
	case e.err == nil:
		return e
	}
	return &exit{code: e.code, err: fmt.Errorf("%s: %w", command, e.err)}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "dptrace",
		Short: "Find silent bugs in PyTorch data pipelines, with proof",
		Long: `dptrace watches a PyTorch training and proves what is silently wrong with its
data pipeline: workers, epochs or ranks that draw the same random numbers,
memory that workers copy, workers that die, crashes that nobody reports.`,
		Example: `  dptrace record -- python train.py
  dptrace report`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRecord())
	root.AddCommand(newReport())
	root.AddCommand(newExport())
	root.AddCommand(newExplain())
	root.AddCommand(newDoctor())
	root.AddCommand(newVersion())
	root.AddCommand(newHelpers()...)
	return root
}

// tell writes a message of ours. What it quotes of a trace, of a file or of the
// command line cannot steer a terminal.
func tell(w io.Writer, message string) {
	_, _ = fmt.Fprintln(w, "dptrace:", words.Printable(message)) // there is nobody else to tell
}

func warn(w io.Writer, message string) { tell(w, "warning: "+message) }

// run executes the command line and gives the exit code.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return 0
	}
	code := exitUsage // cobra's own errors: unknown commands and flags, wrong arguments
	var e *exit
	if errors.As(err, &e) {
		if code = e.code; e.signal > 0 {
			recorder.EndBy(e.signal)
		}
		if e.err == nil {
			return code
		}
	}
	tell(os.Stderr, err.Error())
	return code
}

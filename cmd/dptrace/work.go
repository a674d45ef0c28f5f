package main

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// work is a command that may take long: it says on a terminal how far it is, and
// leaves no half file behind when it is interrupted.
type work struct {
	stderr io.Writer
	quiet  bool

	mu      sync.Mutex // held for ever once a signal has come
	part    string     // the file that is being written beside the one that it becomes
	line    *progressLine
	signals chan os.Signal
	ended   chan struct{}
}

func quietFlag(cmd *cobra.Command, quiet *bool) {
	const usage = "say nothing but warnings and errors: no progress, no name of what was written (default false)"
	cmd.Flags().BoolVarP(quiet, "quiet", "q", false, usage)
}

// interrupts end the work with 128 + their number.
var interrupts = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// beginWork is to be ended.
func beginWork(stderr io.Writer, quiet bool) *work {
	w := beginSending(stderr, quiet)
	for _, s := range interrupts {
		if !signal.Ignored(s) { // nohup, a shell's background
			signal.Notify(w.signals, s)
		}
	}
	go func() {
		select {
		case <-w.ended:
		case s := <-w.signals:
			w.interrupted(s.(syscall.Signal))
		}
	}()
	return w
}

// beginSending is work that looks after interrupts itself, and writes no file.
func beginSending(stderr io.Writer, quiet bool) *work {
	boundMemory()
	return &work{stderr: stderr, quiet: quiet, signals: make(chan os.Signal, 1), ended: make(chan struct{})}
}

// interrupted tidies up and ends the program. Whoever writes cannot give a file its name any more.
func (w *work) interrupted(s syscall.Signal) {
	w.mu.Lock()
	w.line.close()
	if w.part != "" {
		os.Remove(w.part)
	}
	os.Exit(128 + int(s))
}

func (w *work) end() {
	w.done()
	signal.Stop(w.signals)
	close(w.ended)
}

// reading says how far the rows of a run are read.
func (w *work) reading(p *traces.Progress) { w.show(func() string { return howFarRead(p) }) }

// writing says how much was written to a stream.
func (w *work) writing(name string, to io.Writer) io.Writer {
	counted := &counted{to: to}
	w.show(func() string { return howFarWritten(name, counted.n.Load()) })
	return counted
}

// sending says how much a server has taken.
func (w *work) sending(arrived *atomic.Int64) {
	w.show(func() string { return words.Count(int(arrived.Load()), "item") + " delivered" })
}

// show another thing that takes long.
func (w *work) show(what func() string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil {
		w.line = newProgressLine(w.stderr, w.quiet)
	}
	w.line.now(what)
}

// done takes the line of progress away: something else is going to be printed.
func (w *work) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line.close()
	w.line = nil
}

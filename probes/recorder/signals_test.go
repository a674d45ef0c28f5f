package recorder

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"
)

// However long it takes to write what is left when the target has ended: Ctrl-C ends
// the recorder, the first one soon, a second one at once. What only tells a program
// something does not.
func TestSignalsWhileClosing(t *testing.T) {
	for _, sent := range [][]os.Signal{{syscall.SIGINT}, {syscall.SIGHUP, syscall.SIGTERM}, {syscall.SIGUSR1, syscall.SIGWINCH, syscall.SIGHUP}} {
		caught := make(chan os.Signal, 1) // what nohup ignores here would be ignored there: what is caught is not inherited
		signal.Notify(caught, sent...)
		defer signal.Stop(caught)
		cmd := exec.Command("/proc/self/exe", "closing")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		hung := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		if line, _, _ := bufio.NewReader(out).ReadLine(); string(line) != "closing" {
			t.Fatalf("it said %q", line)
		}
		// Stopped, so that they come together, however long this process is kept from sending the next one.
		stop(t, cmd.Process)
		for _, n := range append(sent, syscall.SIGCONT) {
			if err := cmd.Process.Signal(n); err != nil {
				t.Fatal(err)
			}
		}
		var ended *exec.ExitError // in the order of their numbers: so they come when they come together
		if err := cmd.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != sent[len(sent)-1] {
			t.Errorf("after %v it ended so: %v", sent, err)
		}
		hung.Stop()
	}
}

// stop stops a child, and returns when it has: until then it may take what it is sent.
func stop(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	for !status.Stopped() {
		if _, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil); err != nil && !errors.Is(err, syscall.EINTR) || status.Exited() || status.Signaled() {
			t.Fatalf("not stopped, but %#x: %v", status, err)
		}
	}
}

// Each signal has one place: it is passed on, or there is a reason why not.
func TestForwarded(t *testing.T) {
	for _, n := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGSEGV, 35, 64} {
		if !slices.Contains(forwarded, n) {
			t.Errorf("%v is not passed on", n)
		}
	}
	if len(forwarded)+len(keptSignals) != lastSignal {
		t.Errorf("%d signals are passed on and %d are not, of %d", len(forwarded), len(keptSignals), lastSignal)
	}
}

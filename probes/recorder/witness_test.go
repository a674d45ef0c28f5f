package recorder

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// called is a witness of the test's own; the test takes what is sent to itself.
func called(t *testing.T) *witness {
	t.Helper()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	w, err := callWitness(forwarded)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.dismiss)
	if w.saw(syscall.SIGUSR2) || w.owed != 0 { // it listens when it has answered
		t.Fatal("nothing was sent, and the witness says it saw it or nothing at all")
	}
	return w
}

// send sends a signal to the witness.
func (w *witness) send(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(w.pid, s); err != nil {
		t.Fatal(err)
	}
}

// TestWitnessOfABusyMachine stands a witness still until it is asked: then what
// was sent to it before is told, and what was not is not.
func TestWitnessOfABusyMachine(t *testing.T) {
	w := called(t)
	for round := range 5 {
		for _, sent := range []bool{true, false} {
			w.send(t, syscall.SIGSTOP)
			if sent {
				w.send(t, syscall.SIGTERM)
			}
			go func() {
				for { // until the question lies in the pipe
					if n, err := unix.IoctlGetInt(w.stdin, unix.TIOCINQ); err != nil || n > 0 {
						break
					}
					runtime.Gosched()
				}
				_ = syscall.Kill(w.pid, syscall.SIGCONT) // or it is never told
			}()
			if got := w.saw(syscall.SIGTERM); got != sent {
				t.Errorf("round %d: SIGTERM was sent to all: %v, said: %v", round, sent, got)
			}
		}
	}
}

// TestWitnessThatIsTooYoung: a signal that is sent to all before the witness holds
// any ends it, which tells as much.
func TestWitnessThatIsTooYoung(t *testing.T) {
	for round := range 10 {
		w, err := callWitness(forwarded)
		if err != nil {
			t.Fatal(err)
		}
		w.send(t, syscall.SIGTERM)
		if !w.saw(syscall.SIGTERM) {
			t.Errorf("round %d: SIGTERM was sent to all, and the witness says no", round)
		}
		w.dismiss()
	}
	w, err := callWitness(forwarded)
	if err != nil {
		t.Fatal(err)
	}
	w.send(t, syscall.SIGKILL)
	if w.saw(syscall.SIGTERM) {
		t.Error("SIGTERM was not sent, and the witness says it was")
	}
}

// TestWitnessOfSeveral: signals that come together reach us in another order than the
// witness; each was sent to all.
func TestWitnessOfSeveral(t *testing.T) {
	w := called(t)
	for _, n := range []syscall.Signal{syscall.SIGPWR, syscall.SIGUSR1, 40} {
		w.send(t, n)
	}
	for _, n := range []syscall.Signal{40, syscall.SIGPWR, syscall.SIGUSR1} {
		if !w.saw(n) {
			t.Errorf("%v was sent to all, and is said not to be", n)
		}
	}
	if w.saw(syscall.SIGPWR) {
		t.Error("a signal that was sent once is said to be sent twice")
	}
}

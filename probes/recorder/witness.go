package recorder

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// WitnessCommand is the hidden command of the witness.
//
// A signal that reaches us was sent to us alone, and then the target must be
// told, or to the whole process group or session (Ctrl-C, kill %1, timeout,
// slurmstepd), and then the target has it already; a training that is told
// twice to write its checkpoint may give up half way. The kernel does not say
// which. So an idle process of our own waits in the same group: what it
// receives too was sent to all.
const WitnessCommand = "__witness"

// testimony is how long a signal to all may take to arrive at the witness.
const testimony = 200 * time.Millisecond

type witness struct {
	pid   int
	stdin int                   // it ends when this is closed, so also when we die
	seen  <-chan syscall.Signal // closed when it has ended
}

// callWitness starts a witness. Without one every signal but Ctrl-C's is
// forwarded.
func callWitness() (*witness, error) {
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("start witness: %w", err)
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		shut(in[0], in[1])
		return nil, fmt.Errorf("start witness: %w", err)
	}
	args := []string{"dptrace", WitnessCommand}
	for _, s := range forwarded {
		if !signal.Ignored(s) {
			args = append(args, strconv.Itoa(int(s.(syscall.Signal))))
		}
	}
	// Its stderr is its stdout: what it might say there is no testimony.
	files := []uintptr{uintptr(in[0]), uintptr(out[1]), uintptr(out[1])}
	pid, err := syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{Env: os.Environ(), Files: files})
	shut(in[0], out[1])
	if err != nil {
		shut(in[1], out[0])
		return nil, fmt.Errorf("start witness: %w", err)
	}
	seen := make(chan syscall.Signal, 64)
	go func() {
		defer close(seen)
		defer shut(out[0])
		var b [1]byte
		for {
			if n, err := readFull(out[0], b[:]); n == 0 || err != nil {
				return
			}
			seen <- syscall.Signal(b[0])
		}
	}()
	return &witness{pid: pid, stdin: in[1], seen: seen}, nil
}

// saw reports whether the witness received s as well.
func (w *witness) saw(s syscall.Signal) bool {
	timeout := time.After(testimony)
	for {
		select {
		case got, ok := <-w.seen:
			if !ok {
				return false
			}
			if got == s {
				return true
			}
		case <-timeout:
			return false
		}
	}
}

func (w *witness) dismiss() {
	shut(w.stdin)
	for range w.seen { // until it has ended
	}
	_, _ = syscall.Wait4(w.pid, nil, 0, nil)
}

// Witness is the witness's side: it writes the number of each signal, one byte,
// until its stdin ends.
func Witness(signals []string) error {
	c := make(chan os.Signal, 64)
	for _, text := range signals {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		signal.Notify(c, syscall.Signal(n))
	}
	go func() {
		for s := range c {
			_, _ = unix.Write(1, []byte{byte(s.(syscall.Signal))})
		}
	}()
	var b [1]byte
	for {
		if n, err := readFull(0, b[:]); n == 0 || err != nil {
			return nil
		}
	}
}

package recorder

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/procfs"
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

const (
	// testimony is how long after a signal to us the same signal may be sent to
	// all. Then the witness is asked, for it may be as busy as the machine is:
	// what was sent to it before is told before it answers.
	testimony = 200 * time.Millisecond
	// silence ends the waiting for an answer: the witness may have been stopped.
	silence = 10 * time.Second
)

const (
	// nothing is the witness's answer: there is no signal more.
	nothing = syscall.Signal(0)
	// fence is what it sends to itself when it is asked. Of signals that have
	// been handled os/signal gives the one of the lowest number first, and this
	// one is the last of all. One that it has not sent itself is told as any other.
	fence = syscall.Signal(lastSignal)
)

type witness struct {
	pid   int
	stdin int                          // a byte asks; it ends when this is closed, so also when we die
	seen  <-chan syscall.Signal        // closed when it has ended
	owed  int                          // answers
	told  map[syscall.Signal]time.Time // what it saw while another signal was asked about
	end   syscall.WaitStatus           // where gone
	gone  bool
}

// callWitness starts a witness. Without one every signal but Ctrl-C's is
// forwarded.
func callWitness(listened []syscall.Signal) (*witness, error) {
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("start witness: %w", err)
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		shut(in[0], in[1])
		return nil, fmt.Errorf("start witness: %w", err)
	}
	args := []string{"dptrace", WitnessCommand}
	for _, n := range listened {
		args = append(args, strconv.Itoa(int(n)))
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
	return &witness{pid: pid, stdin: in[1], seen: seen, told: map[syscall.Signal]time.Time{}}, nil
}

// saw reports whether the witness received s as well.
func (w *witness) saw(s syscall.Signal) bool {
	if at, ok := w.told[s]; ok {
		delete(w.told, s)
		if time.Since(at) < again {
			return true
		}
	}
	ask, giveUp := time.After(testimony), time.After(testimony+silence)
	for asked := false; ; {
		select {
		case got, ok := <-w.seen:
			if !ok {
				return w.endedBy(s)
			}
			if got == s {
				return true
			}
			if got != nothing { // os/signal gives us and the witness those that come together in an order of its own
				w.told[got] = time.Now()
				continue
			}
			if w.owed--; asked && w.owed == 0 {
				return false
			}
		case <-ask:
			if _, err := unix.Write(w.stdin, []byte{0}); err != nil {
				return false
			}
			asked, w.owed = true, w.owed+1
		case <-giveUp:
			return false
		}
	}
}

// endedBy reports whether the witness, which has ended, was ended by s: one that
// was sent to all before it could hold any.
func (w *witness) endedBy(s syscall.Signal) bool {
	w.dismiss()
	return w.end.Signaled() && w.end.Signal() == s
}

func (w *witness) dismiss() {
	if w == nil || w.gone {
		return
	}
	w.gone = true
	shut(w.stdin)
	for range w.seen { // until it has ended
	}
	_, _ = syscall.Wait4(w.pid, &w.end, 0, nil)
}

// Witness is the witness's side: it writes the number of each signal, one byte,
// and for each byte that it reads a zero, until its stdin ends.
func Witness(signals []string) error {
	c := make(chan os.Signal, 64)
	var held uint64 // bits as in /proc
	for _, text := range signals {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		signal.Notify(c, syscall.Signal(n))
		held |= 1 << (n - 1)
	}
	signal.Notify(c, fence)
	var asked atomic.Int64 // fences that were sent and have not come
	go func() {
		for s := range c {
			if s == fence && asked.Load() > 0 {
				asked.Add(-1)
				s = nothing
			}
			_, _ = unix.Write(1, []byte{byte(s.(syscall.Signal))})
		}
	}()
	var b [1]byte
	for {
		if n, err := readFull(0, b[:]); n == 0 || err != nil {
			return nil
		}
		if err := handled(held); err != nil {
			return fmt.Errorf("witness: %w", err)
		}
		asked.Add(1)
		if err := unix.Kill(os.Getpid(), fence); err != nil {
			return fmt.Errorf("witness: %w", err)
		}
	}
}

// handled returns when the handlers of all signals that were sent to us have run.
// Each may be on a thread of its own that has no turn yet: first none must wait
// for a thread, then each thread gets a signal that it takes when it has returned
// from the handler that it may be in. The runtime sends that one to its threads
// itself and ignores those that come unasked.
func handled(signals uint64) error {
	const passes = unix.SIGURG
	if err := noLonger(os.Getpid(), "ShdPnd", signals); err != nil {
		return err
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if unix.Tgkill(os.Getpid(), id, passes) == nil {
			_ = noLonger(id, "SigPnd", 1<<(passes-1)) // a thread that has ended is in no handler
		}
	}
	return nil
}

// noLonger waits until no signal of a set is in one that the kernel shows of a process or thread.
func noLonger(id int, field string, signals uint64) error {
	for {
		status, err := procfs.Read(int32(id), "status")
		if err != nil {
			return err
		}
		bits, err := strconv.ParseUint(procfs.Field(status, field), 16, 64)
		if err != nil || bits&signals == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

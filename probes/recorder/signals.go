package recorder

import (
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keptSignals are those that are not passed on: those that nobody can take or that
// ask the recorder itself to stop and go on; those that the kernel sends us for
// what we have done (a child's end, a pipe that nobody reads, a file that may not
// grow); and those that Go's runtime and C's threads need for themselves.
var keptSignals = []syscall.Signal{
	syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT,
	syscall.SIGCHLD, syscall.SIGPIPE, syscall.SIGXFSZ,
	syscall.SIGURG, syscall.SIGPROF, ofGo, ofThreads[0], ofThreads[1],
}

// ofGo is what the runtime stops its threads with; no program is told anything with it.
const ofGo = syscall.Signal(33)

// ofThreads are signals of C's threads that Go gives to nobody. The second is
// SIGRTMIN of glibc: the one signal of those that programs use that is not passed on.
var ofThreads = [...]syscall.Signal{32, 34}

// forwarded are all others: somebody sends them to a program to tell it something,
// or to end it. They are sent to us, because our pid is what is known outside.
var forwarded = slices.DeleteFunc(allSignals(), func(n syscall.Signal) bool { return slices.Contains(keptSignals, n) })

func allSignals() (all []syscall.Signal) {
	for n := syscall.Signal(1); n <= lastSignal; n++ {
		all = append(all, n)
	}
	return all
}

// again is how soon the same signal is the same event: timeout(1) sends it to
// us first and then to all.
const again = time.Second

// listener holds the signals that would end the recorder.
type listener struct {
	c       chan os.Signal
	ignored signalSet // when we were started
}

// listen begins to hold signals. A signal that was ignored when we were started
// (nohup, a shell's background job) stays ignored, for the target too.
func listen() *listener {
	l := &listener{c: make(chan os.Signal, 256), ignored: ignoredAtStart()}
	for _, n := range forwarded {
		if l.ignored.has(n) {
			signal.Ignore(n) // the runtime has put its handler there
		} else {
			signal.Notify(l.c, n)
		}
	}
	for _, n := range ofThreads { // they end nothing that is recorded
		setAction(n, sigIgnore)
	}
	// Our stderr may be a pipe that nobody reads any more: writing to it must
	// be an error and not the end of the recorder.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return l
}

// listened are the signals that are held.
func (l *listener) listened() (all []syscall.Signal) {
	return slices.DeleteFunc(slices.Clone(forwarded), l.ignored.has)
}

// restore lets signals end us as they end any program. Those by which a fault of
// our own is found stay with the runtime, which makes errors of faults.
func (l *listener) restore() {
	for _, n := range l.listened() {
		if !slices.Contains(faults, n) {
			signal.Reset(n)
			setAction(n, sigDefault)
		}
	}
}

var faults = []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS}

// forwarding passes on to the target what was sent to us alone.
type forwarding struct {
	done chan struct{}
	wg   sync.WaitGroup
}

func (l *listener) forward(t *target, w *witness) *forwarding {
	f := &forwarding{done: make(chan struct{})}
	f.wg.Add(1)
	go func() {
		defer f.wg.Done()
		defer func() { w.dismiss() }()
		toAll := map[syscall.Signal]time.Time{}
		for {
			select {
			case <-f.done:
				return
			case s := <-l.c:
				n := s.(syscall.Signal)
				switch {
				case time.Since(toAll[n]) < again:
				case w != nil && w.saw(n), w == nil && n == syscall.SIGINT:
					toAll[n] = time.Now()
				default:
					_ = syscall.Kill(t.pid, n) // ESRCH: it has just ended
				}
				if w != nil && w.gone {
					w = l.witness()
				}
			}
		}
	}()
	return f
}

// witness calls one for the signals that are held; nil: it cannot be had.
func (l *listener) witness() *witness {
	w, err := callWitness(l.listened())
	if err != nil {
		return nil
	}
	return w
}

func (f *forwarding) stop() {
	close(f.done)
	f.wg.Wait()
}

// ends are the signals by which a user ends a program that does not end.
var ends = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

const (
	// sameEvent is how long after the target's end a signal may still be the one that ended it.
	sameEvent = 300 * time.Millisecond
	// closingTime is what a recorder that was told to end has for writing what is left.
	closingTime = 2 * time.Second
)

// whileClosing lets signals end the recorder when the target has ended and what is
// left is taken: the first one soon, a second one at once.
func (l *listener) whileClosing() *forwarding {
	f := &forwarding{done: make(chan struct{})}
	f.wg.Add(1)
	began := time.Now()
	go func() {
		defer f.wg.Done()
		var late <-chan time.Time
		var first syscall.Signal
		for {
			select {
			case <-f.done:
				return
			case <-late:
				EndBy(first)
			case s := <-l.c:
				n := s.(syscall.Signal)
				switch {
				case !slices.Contains(ends, n) || time.Since(began) < sameEvent:
				case first != 0:
					EndBy(n)
				default:
					first, late = n, time.After(closingTime)
				}
			}
		}
	}()
	return f
}

// EndBy ends this process by a signal, as the target has ended: a shell's loop
// stops at Ctrl-C only if it sees that. There is no core file of us. It returns
// where the signal does not end us.
func EndBy(n syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // of a file
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)     // where cores go to a program, which has no limit
	setAction(n, sigDefault)                             // EINVAL for SIGKILL
	set := unix.Sigset_t{}                               // it may have been blocked when we were started
	set.Val[(n-1)/wordBits] = 1 << ((n - 1) % wordBits)
	runtime.LockOSThread()
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), n)
	time.Sleep(time.Second)
	runtime.UnlockOSThread()
}

const wordBits = syscall.Signal(8 * unsafe.Sizeof(unix.Sigset_t{}.Val[0]))

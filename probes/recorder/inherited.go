package recorder

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/procfs"
)

const (
	lastSignal = 64
	neverSent  = syscall.Signal(62) // whose disposition at our start is not found out: a program that ignores it is not known
)

// signalSet is signals as /proc shows them: bit n-1 is signal n.
type signalSet uint64

func (s signalSet) has(n syscall.Signal) bool { return s>>(n-1)&1 != 0 }

func (s *signalSet) add(n syscall.Signal) { *s |= 1 << (n - 1) }

// ignoredAtStart are the signals that were ignored when this process was
// started, as nohup and a shell's trap leave them: they are so in the target, too.
//
// Go's runtime puts handlers in their place before any code of ours runs, except
// for SIGHUP and SIGINT. What was there before it keeps, in an array that nobody
// else can name and that it writes to when a signal is asked for by os/signal. So
// one signal gets a handler of which nobody else knows, and is asked for: then the
// array is where that handler is found.
var ignoredAtStart = sync.OnceValue(func() signalSet {
	ignored := ignoredNow()
	before := dispositions()
	if before == nil {
		return ignored
	}
	for n := syscall.Signal(1); n <= lastSignal; n++ {
		if before[n] == sigIgnore {
			ignored.add(n)
		}
	}
	return ignored
})

// ignoredNow are those that the runtime has left as they were.
func ignoredNow() signalSet {
	status, err := procfs.Read(int32(os.Getpid()), "status")
	if err != nil {
		return 0
	}
	bits, err := strconv.ParseUint(procfs.Field(status, "SigIgn"), 16, 64)
	if err != nil {
		return 0
	}
	return signalSet(bits)
}

const (
	sigDefault = 0
	sigIgnore  = 1
)

// action is struct sigaction of the kernel, on x86-64 and arm64.
type action struct{ handler, flags, restorer, mask uintptr }

// setAction goes past Go's runtime, which keeps its own account of handlers.
func setAction(n syscall.Signal, handler uintptr) {
	a := action{handler: handler}
	// EINVAL is for signals that nobody may set.
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&a)), 0, unsafe.Sizeof(a.mask), 0, 0)
}

// dispositions is the runtime's array of the handlers that it found; nil: it
// cannot be found, in a Go that keeps it in another way.
func dispositions() *[lastSignal + 1]uintptr {
	const ours = uintptr(0x6474726163650001) // no address of any processor
	signal.Ignore(neverSent)
	setAction(neverSent, ours)
	c := make(chan os.Signal, 1)
	signal.Notify(c, neverSent)
	defer signal.Stop(c)
	for _, words := range dataSegments() {
		for i, w := range words {
			if w != ours || i < int(neverSent) || i+lastSignal-int(neverSent) >= len(words) {
				continue
			}
			found := (*[lastSignal + 1]uintptr)(words[i-int(neverSent):])
			if plausible(found) {
				found[neverSent] = sigDefault
				return found
			}
		}
	}
	return nil
}

// plausible reports whether all that an array holds besides our own handler is
// what a program can have been started with: exec leaves no handler.
func plausible(found *[lastSignal + 1]uintptr) bool {
	for n, handler := range found {
		if n != int(neverSent) && handler != sigDefault && handler != sigIgnore {
			return false
		}
	}
	return true
}

// dataSegments are the variables of this program: the writable mappings of its
// file, and the one that follows, of variables that begin as zero.
func dataSegments() (all [][]uintptr) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	exe := procfs.Link(int32(os.Getpid()), "exe")
	var last uint64 // end of the program's mapping before
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		low, high, _ := strings.Cut(fields[0], "-")
		from, err1 := strconv.ParseUint(low, 16, 64)
		to, err2 := strconv.ParseUint(high, 16, 64)
		if err1 != nil || err2 != nil {
			continue
		}
		ofFile := len(fields) > 5 && strings.HasSuffix(line, exe+"\n")
		if !ofFile && (from != last || len(fields) > 5) {
			continue
		}
		last = to
		if strings.HasPrefix(fields[1], "rw") {
			// The address is of our own variables, which stay where they are.
			p := *(*unsafe.Pointer)(unsafe.Pointer(&from))
			all = append(all, unsafe.Slice((*uintptr)(p), (to-from)/uint64(unsafe.Sizeof(uintptr(0)))))
		}
	}
	return all
}

// restoreSignals gives each signal of this process, which is about to become
// another program, what it had when the recorder was started.
func restoreSignals(ignored signalSet) {
	for n := syscall.Signal(1); n <= lastSignal; n++ {
		switch {
		case n == ofGo || n == syscall.SIGKILL || n == syscall.SIGSTOP:
		case ignored.has(n):
			setAction(n, sigIgnore)
		default:
			setAction(n, sigDefault)
		}
	}
}

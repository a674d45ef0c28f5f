package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// HelperCommand is the hidden command of the helper that becomes the target:
// `dptrace HelperCommand GO FAILED IGNORED PROGRAM ARGV…`, the first two descriptors,
// the third the signals to ignore, a bit for each.
//
// The probes must know the target's pid before it runs, so a helper is started
// first: it waits until it may go, then executes the command in its place. It
// is our own program because Go cannot run code between fork and exec.
const HelperCommand = "__exec"

// target is the recorded command.
type target struct {
	pid    int
	goes   int // write end: closing or writing lets it go
	failed int // read end: the errno of exec, or nothing
}

// start starts the helper. It inherits everything as if we were not there:
// process group, session, terminal, all descriptors (a shell's <(…) is one),
// limits, and signals as they were when we were started.
func start(program string, argv, env []string, ignored signalSet) (*target, error) {
	var goes, failed [2]int
	if err := unix.Pipe2(goes[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	if err := unix.Pipe2(failed[:], unix.O_CLOEXEC); err != nil {
		shut(goes[0], goes[1])
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	// At their own numbers: 3, 4, … may be descriptors that the user passes on.
	inherit(goes[0])
	inherit(failed[1])
	args := append([]string{"dptrace", HelperCommand, strconv.Itoa(goes[0]), strconv.Itoa(failed[1]),
		strconv.FormatUint(uint64(ignored), 16), program}, argv...)
	pid, err := syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}})
	shut(goes[0], failed[1])
	if err != nil {
		shut(goes[1], failed[0])
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return &target{pid: pid, goes: goes[1], failed: failed[0]}, nil
}

// shut closes descriptors that nothing was written to, or whose other end finds
// out: there is no error to act on.
func shut(fds ...int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

func inherit(fd int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0) }

// release lets the helper execute the program, and returns why it could not.
func (t *target) release(program string) error {
	shut(t.goes)
	defer shut(t.failed)
	var b [4]byte
	n, err := readFull(t.failed, b[:])
	if err != nil || n < len(b) {
		return nil // closed by exec; or the helper was killed, which its exit status tells
	}
	return execFailure(program, syscall.Errno(binary.LittleEndian.Uint32(b[:])))
}

// abandon ends a helper that shall not become the target.
func (t *target) abandon() {
	_ = syscall.Kill(t.pid, syscall.SIGKILL) // our child, not waited for: it is there
	shut(t.goes, t.failed)
}

func readFull(fd int, b []byte) (n int, err error) {
	for n < len(b) {
		m, err := unix.Read(fd, b[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || m == 0 {
			return n, err
		}
		n += m
	}
	return n, nil
}

// Ending is how the target ended.
type Ending struct {
	syscall.WaitStatus
	cpuNS int64 // of it and of all its descendants that were waited for
}

// Code is what a shell would show: 128+n if signal n ended it.
func (e Ending) Code() int {
	if e.Signaled() {
		return exitSignal + int(e.Signal())
	}
	return e.ExitStatus()
}

// wait blocks until the target has ended.
func (t *target) wait() Ending {
	var e Ending
	var used syscall.Rusage
	for {
		_, err := syscall.Wait4(t.pid, &e.WaitStatus, 0, &used)
		if !errors.Is(err, syscall.EINTR) { // another error is impossible: it is our child and nobody else waits for it
			e.cpuNS = used.Utime.Nano() + used.Stime.Nano()
			return e
		}
	}
}

// Helper is the helper's side; it returns only if the command cannot be
// executed. If the recorder dies first the command runs all the same.
func Helper(args []string) error {
	if len(args) < 5 {
		return errors.New("this command is for dptrace itself")
	}
	goes, err1 := strconv.Atoi(args[0])
	failed, err2 := strconv.Atoi(args[1])
	ignored, err3 := strconv.ParseUint(args[2], 16, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	restoreSignals(signalSet(ignored)) // a signal that comes before exec does what it will do after it
	unix.CloseOnExec(goes)
	unix.CloseOnExec(failed)
	var b [1]byte
	_, _ = readFull(goes, b[:]) // until the other end is closed
	err := execute(args[3], args[4:], environment())
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		errno = syscall.EINVAL
	}
	_, _ = unix.Write(failed, binary.LittleEndian.AppendUint32(nil, uint32(errno)))
	return err
}

// execute replaces this process by the program. A file without a header that
// the kernel knows is given to the shell, as execvp does.
func execute(program string, argv, env []string) error {
	runtime.LockOSThread()
	err := syscall.Exec(program, argv, env)
	if errors.Is(err, syscall.ENOEXEC) {
		return syscall.Exec("/bin/sh", append([]string{"sh", program}, argv[1:]...), env)
	}
	return err
}

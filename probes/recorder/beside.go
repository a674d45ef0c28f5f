package recorder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// companion is a process of ours that works on the trace while it is written: a
// program of its own, so that it can neither slow nor end the recorder, at the
// lowest priority, in a process group of its own, so that Ctrl-C does not end it
// before it has told what became of its work.
type companion struct {
	pid   int
	stdin int      // a byte says that the trace is sealed; that we have died closes it as well
	said  *os.File // what it has to tell, at its end
}

// niceness of the companion: all others go first.
const niceness = 19

// accompany starts `dptrace ARGUMENTS FOLDER PART`.
func accompany(arguments []string, folder, part string) (*companion, error) {
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("start %s: %w", arguments[0], err)
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		shut(in[0], in[1])
		return nil, fmt.Errorf("start %s: %w", arguments[0], err)
	}
	args := append(append([]string{"dptrace"}, arguments...), folder, part)
	attr := &syscall.ProcAttr{
		Env:   append(os.Environ(), "GOMAXPROCS=1", "GOGC=50"),
		Files: []uintptr{uintptr(in[0]), uintptr(out[1]), uintptr(out[1])},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	pid, err := forkNice(args, attr)
	shut(in[0], out[1])
	if err != nil {
		shut(in[1], out[0])
		return nil, fmt.Errorf("start %s: %w", arguments[0], err)
	}
	return &companion{pid: pid, stdin: in[1], said: os.NewFile(uintptr(out[0]), "companion")}, nil
}

// forkNice starts ourselves from a thread of low priority, which is what a new
// process inherits: set from outside, the threads that it has already would keep
// theirs. The thread ends with the goroutine, as it is not unlocked.
func forkNice(args []string, attr *syscall.ProcAttr) (pid int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness); err == nil {
			pid, err = syscall.ForkExec("/proc/self/exe", args, attr)
		}
	}()
	<-done
	return pid, err
}

// sealed says that the trace is whole.
func (c *companion) sealed() {
	if c != nil {
		_, _ = unix.Write(c.stdin, []byte{0}) // it may have ended
		shut(c.stdin)
	}
}

// ended waits for it, and gives the lines that it had to tell; failed: its work is
// not done.
func (c *companion) ended() (lines []string, failed bool) {
	text, _ := io.ReadAll(c.said) // a pipe of ours
	c.said.Close()
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(c.pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if text := strings.TrimSpace(string(text)); text != "" {
		lines = strings.Split(text, "\n")
	}
	return lines, !status.Exited() || status.ExitStatus() != 0
}

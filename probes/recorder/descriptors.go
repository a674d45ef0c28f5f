package recorder

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	standardInput = iota
	standardOutput
	standardError
)

// handedOn are the descriptors that who started us has left open for the target:
// a shell's <(…), a lock, a pipe whose end tells that the target is ready. Asked
// for before any of our own is opened.
func (o Options) handedOn() (fds []int) {
	if !o.Hand {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= standardError {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			fds = append(fds, fd)
		}
	}
	return fds
}

// keep passes them on to no process besides the target, which has been started.
func keep(fds []int) {
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
}

// letGo closes what the target has of its own by now: who reads its output, writes
// to its input or waits for a lock must see that it has closed them. What we have
// to say goes to stderr, which stays open.
func letGo(fds []int) {
	shut(fds...)
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return // a root without /dev: an open pipe is better than a number that the next file takes
	}
	defer shut(null)
	for _, fd := range []int{standardInput, standardOutput} {
		_ = unix.Dup3(null, fd, 0) // EBUSY is for threads that open it meanwhile: ours do not
	}
}

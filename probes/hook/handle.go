package hook

import (
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
)

// handle is the kernel's descriptor of a process: it tells the end of that very
// one, whoever has its pid by then. nil where there is none: /proc is asked.
type handle struct{ fd int }

// follow lets the end of a process wake us.
func follow(pid int32, bells *probe.Bells) *handle {
	fd, err := unix.PidfdOpen(int(pid), 0)
	if err != nil { // before Linux 5.3; too many of them; it has ended
		return nil
	}
	h := &handle{fd}
	if bells.Hang(fd) != nil {
		h.close()
		return nil
	}
	return h
}

// ended reports whether the process has, with all its threads; known is false
// where that must be found out otherwise.
func (h *handle) ended() (ended, known bool) {
	if h == nil {
		return false, false
	}
	readable := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(readable, 0)
	return n > 0, err == nil
}

func (h *handle) close() {
	if h != nil {
		_ = unix.Close(h.fd)
	}
}

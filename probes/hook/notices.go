package hook

import (
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
)

// notices is what the kernel tells of the spool: that there is a new file in it,
// and that a hook rings (PROTOCOL.md). nil where it cannot be had: the folder is
// looked at by the clock.
type notices struct{ fd int }

func notice(spool string, bells *probe.Bells) *notices {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil { // a user has 128 of them
		return nil
	}
	n := &notices{fd: fd}
	// IN_ATTRIB is the bell: utime(2) of a ring. What we do there ourselves, writing
	// and unlinking, is none of these.
	if _, err = unix.InotifyAddWatch(fd, spool, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ATTRIB|unix.IN_ONLYDIR); err == nil {
		err = bells.Hang(fd)
	}
	if err != nil {
		n.close()
		return nil
	}
	return n
}

// taken reports whether there was anything. What it was the next look finds out.
func (n *notices) taken() (some bool) {
	if n == nil {
		return false
	}
	var b [4096]byte
	for {
		m, err := unix.Read(n.fd, b[:])
		if m <= 0 || err != nil {
			return some
		}
		some = true
	}
}

func (n *notices) close() {
	if n != nil {
		_ = unix.Close(n.fd)
	}
}

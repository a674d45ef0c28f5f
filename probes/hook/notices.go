package hook

import (
	"encoding/binary"

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

// taken reports whether there may be a new file. Which it is the folder tells.
func (n *notices) taken() (created bool) {
	if n == nil {
		return false
	}
	var b [4096]byte
	for {
		m, err := unix.Read(n.fd, b[:])
		if m <= 0 || err != nil {
			return created
		}
		for rest := b[:m]; len(rest) >= unix.SizeofInotifyEvent; {
			mask, length := binary.NativeEndian.Uint32(rest[4:]), binary.NativeEndian.Uint32(rest[12:]) // struct inotify_event
			created = created || mask&^unix.IN_ATTRIB != 0                                              // also that some were left out
			rest = rest[min(uint64(unix.SizeofInotifyEvent)+uint64(length), uint64(len(rest))):]
		}
	}
}

func (n *notices) close() {
	if n != nil {
		_ = unix.Close(n.fd)
	}
}

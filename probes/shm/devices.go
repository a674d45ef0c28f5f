package shm

import (
	"os"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
)

// devices tells the file systems at /dev/shm from the others of their kind: /tmp
// and /run often are such, and memfd_create has one of its own.
type devices struct {
	target int32
	known  map[uint32]bool // by the kernel's number; what could not be found out is not in it
}

// isShm reports whether a device is at /dev/shm in a process, or, where that is
// gone, in one that it comes from.
func (d *devices) isShm(device uint32, r probe.Node, tree *probe.Tree) bool {
	if is, ok := d.known[device]; ok {
		return is
	}
	own := true
	for range 16 { // generations
		if s, err := procfs.ReadShm(r.Pid); r.Ended.IsZero() && err == nil {
			is := s.Device == deviceOf(device)
			if is || own {
				d.known[device] = is
			}
			if is {
				return true
			}
		}
		own = false
		parent, ok := tree.Of(r.Parent)
		if !ok {
			break
		}
		r = parent
	}
	for _, pid := range []int32{d.target, int32(os.Getpid())} {
		if s, err := procfs.ReadShm(pid); err == nil && s.Device == deviceOf(device) {
			d.known[device] = true
			return true
		}
	}
	return false
}

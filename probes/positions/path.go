package positions

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/procfs"
)

// pathOf is where the descriptor of a process leads; "" if the process is gone,
// or the descriptor is of another file by now.
func pathOf(pid, fd int32, e *positionsPositionEvent) string {
	link := fmt.Sprintf("fd/%d", fd)
	var st unix.Stat_t
	if unix.Stat(fmt.Sprintf("/proc/%d/%s", pid, link), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return ""
	}
	// overlayfs and btrfs show other numbers than the kernel has: where the device is
	// not the kernel's own the descriptor is taken at its word.
	const minorBits = 20 // of the kernel's own dev_t, include/linux/kdev_t.h
	if st.Dev == unix.Mkdev(e.Device>>minorBits, e.Device&(1<<minorBits-1)) && st.Ino != e.Number {
		return ""
	}
	if path := procfs.Link(pid, link); filepath.IsAbs(path) {
		return path
	}
	return ""
}

package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadCPU is the CPU time of the calling thread. A goroutine that wants to
// know its own is locked to one.
func ThreadCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is CLOCK_MONOTONIC in ns: the time of the rows.
func Now() int64 { return clock(unix.CLOCK_MONOTONIC) }

// BootNow is CLOCK_BOOTTIME in ns: the clock of procfs.Stat.StartTicks.
func BootNow() int64 { return clock(unix.CLOCK_BOOTTIME) }

// RealNow is CLOCK_REALTIME in ns.
func RealNow() int64 { return clock(unix.CLOCK_REALTIME) }

func clock(id int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err) // a clock that this kernel does not have: older than any that Go runs on
	}
	return t.Nano()
}

// ThreadCPU is the CPU time of the calling thread. A goroutine that wants to
// know its own is locked to one.
func ThreadCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

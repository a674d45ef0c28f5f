package recorder

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

// costs is what recording costs in CPU time of our own processes.
type costs struct {
	begin   time.Duration // ours, until the target was executed
	helper  time.Duration // that the target's process had spent by then
	witness time.Duration // known at the end
}

// started takes the part that is paid once.
func (c *costs) started(target int) {
	c.begin, c.helper = usage(unix.RUSAGE_SELF), cpuOf(target)
}

// began counts what was begun later.
func (c *costs) began(cpu time.Duration) { c.begin += cpu }

// ended counts the witness: it and the target are all that we have waited for.
func (c *costs) ended(how Ending) {
	c.witness = max(usage(unix.RUSAGE_CHILDREN)-time.Duration(how.cpuNS), 0)
}

// row is what was spent so far.
func (c *costs) row(wakes uint64) traces.Overhead {
	o := traces.Overhead{Head: now(), Calls: wakes, CPUNS: int64(usage(unix.RUSAGE_SELF) + c.helper + c.witness),
		StartNS: int64(c.begin + c.helper + c.witness)} // the witness does nothing but begin, and wait
	if st, err := procfs.ReadStat(int32(os.Getpid())); err == nil {
		o.Rss = st.RSSPages * int64(os.Getpagesize())
	}
	return o
}

func usage(whose int) time.Duration {
	var u unix.Rusage
	if unix.Getrusage(whose, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuOf is the CPU time of a process and all its threads, by clock_getcpuclockid(3).
func cpuOf(pid int) time.Duration {
	const scheduled = 2 // CPUCLOCK_SCHED of include/linux/posix-timers.h
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid)<<3|scheduled, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is USER_HZ, which is 100 on every Linux architecture that Go
// runs on (the kernel's own HZ differs).
const ticksPerSecond = 100

// Tick is the unit of Stat.StartTicks and CPU.
const Tick = time.Second / ticksPerSecond

// Stat is what dptrace uses of /proc/PID/stat.
type Stat struct {
	Pid, Ppid  int32
	Comm       string
	State      byte   // R, S, D, Z, T, t, X, …
	StartTicks uint64 // since boot (CLOCK_BOOTTIME)
	CPU        time.Duration
	Threads    int32
	RSSPages   int64
}

// Gone is true for a process that has ended, whether or not its parent knows.
func (s Stat) Gone() bool { return s.State == 'Z' || s.State == 'X' || s.State == 'x' }

var errStat = errors.New("/proc/PID/stat is not as expected")

// ReadStat reads /proc/PID/stat.
func ReadStat(pid int32) (Stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(int(pid)) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	s, err := parseStat(b)
	if err != nil {
		return Stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return s, nil
}

// parseStat takes the name from between the first '(' and the last ')': it may
// hold both, and spaces.
func parseStat(b []byte) (s Stat, err error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return s, errStat
	}
	s.Comm = string(b[open+1 : end])
	fields := bytes.Fields(b[end+1:]) // from field 3 of proc(5) on
	if len(fields) < 22 || len(fields[0]) != 1 {
		return s, errStat
	}
	s.State = fields[0][0]
	number := func(text []byte) int64 {
		n, e := strconv.ParseInt(string(text), 10, 64)
		if e != nil {
			err = errStat
		}
		return n
	}
	s.Pid = int32(number(bytes.TrimSpace(b[:open])))
	s.Ppid = int32(number(fields[1]))
	s.CPU = time.Duration(number(fields[11])+number(fields[12])) * Tick
	s.Threads = int32(number(fields[17]))
	s.StartTicks = uint64(number(fields[19]))
	s.RSSPages = number(fields[21])
	return s, err
}

// Now is CLOCK_MONOTONIC in ns: the time of the rows.
func Now() int64 { return clock(unix.CLOCK_MONOTONIC) }

// BootNow is CLOCK_BOOTTIME in ns: the clock of Stat.StartTicks.
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

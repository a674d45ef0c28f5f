package procfs

import (
	"bytes"
	"errors"
	"fmt"
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
	Terminal   uint64 // device of its controlling terminal; 0 none
	StartTicks uint64 // since boot (CLOCK_BOOTTIME)
	CPU        time.Duration
	Threads    int32
	RSSPages   int64
	Faults     uint64 // page faults of all kinds, without those of its children
}

// Gone is true for a process that has ended, whether or not its parent knows.
func (s Stat) Gone() bool { return s.State == 'Z' || s.State == 'X' || s.State == 'x' }

var errStat = errors.New("/proc/PID/stat is not as expected")

// ReadStat reads /proc/PID/stat.
func ReadStat(pid int32) (Stat, error) {
	b, err := Read(pid, "stat")
	if err != nil {
		return Stat{}, err
	}
	s, err := parseStat(b)
	if err != nil {
		return Stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return s, nil
}

// Alive reports whether the process with this pid and start has not ended.
func Alive(pid int32, start uint64) bool {
	st, err := ReadStat(pid)
	return err == nil && st.StartTicks == start && !st.Gone()
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
	terminal := uint32(number(fields[4])) // its bits are those of the kernel's new_encode_dev
	s.Terminal = unix.Mkdev(terminal>>8&0xfff, terminal&0xff|terminal>>12&0xfff00)
	s.CPU = time.Duration(number(fields[11])+number(fields[12])) * Tick
	s.Threads = int32(number(fields[17]))
	s.StartTicks = uint64(number(fields[19]))
	s.RSSPages = number(fields[21])
	s.Faults = uint64(number(fields[7]) + number(fields[9]))
	return s, err
}

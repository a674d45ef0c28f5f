package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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
	Faults     uint64 // page faults of all kinds, without those of its children
}

// Gone is true for a process that has ended, whether or not its parent knows.
func (s Stat) Gone() bool { return s.State == 'Z' || s.State == 'X' || s.State == 'x' }

var errStat = errors.New("/proc/PID/stat is not as expected")

// ReadProc reads /proc/PID/NAME. It is os.ReadFile without the attempts to put
// the file under the runtime's poller, which cost more than the reading.
func ReadProc(pid int32, name string) ([]byte, error) {
	path := "/proc/" + strconv.Itoa(int(pid)) + "/" + name
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	b := make([]byte, 0, 1024)
	for {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil: // ESRCH: it has just ended
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return b, nil
		}
		if b = b[:len(b)+n]; len(b) == cap(b) {
			b = slices.Grow(b, len(b))
		}
	}
}

// ReadStat reads /proc/PID/stat.
func ReadStat(pid int32) (Stat, error) {
	b, err := ReadProc(pid, "stat")
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
	s.Faults = uint64(number(fields[7]) + number(fields[9]))
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

package procfs

import (
	"bytes"
	"os"
	"strconv"
)

// LastPid is the number that was given last to a process or thread of this pid
// namespace; they are given in ascending order, and begin anew at their end. ok
// is false where the kernel does not tell.
func LastPid() (pid int32, ok bool) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(b)
	if len(fields) < 5 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(fields[4]), 10, 32)
	return int32(n), err == nil && n > 0
}

// IsProcess tells a process from a thread, of which /proc has a folder too,
// though it lists none.
func IsProcess(pid int32) bool {
	b, err := Read(pid, "status")
	return err == nil && Field(b, "Tgid") == strconv.Itoa(int(pid))
}

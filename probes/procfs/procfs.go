// Package procfs reads /proc. It knows its formats, and nothing of what the
// probes make of them.
package procfs

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func path(pid int32, name string) string { return "/proc/" + strconv.Itoa(int(pid)) + "/" + name }

// most is how much is read of a file: a process has a say in how long its maps,
// its arguments and its environment are.
const most = 64 << 20

// Read reads /proc/PID/NAME. It is os.ReadFile without the attempts to put the
// file under the runtime's poller, which cost more than the reading.
func Read(pid int32, name string) ([]byte, error) {
	path := path(pid, name)
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
		case n == 0 || len(b) >= most:
			return b, nil
		}
		if b = b[:len(b)+n]; len(b) == cap(b) {
			b = slices.Grow(b, len(b))
		}
	}
}

// Link reads a link of /proc/PID, as exe, cwd and fd/N are; "" if the process is
// gone or another user's.
func Link(pid int32, name string) string {
	target, err := os.Readlink(path(pid, name))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(target, " (deleted)")
}

// Pids lists the processes of this pid namespace, in no order.
func Pids() []int32 {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // what was listed before an error counts
	pids := make([]int32, 0, len(names))
	for _, n := range names {
		if pid, err := strconv.ParseInt(n, 10, 32); err == nil {
			pids = append(pids, int32(pid))
		}
	}
	return pids
}

// Fields gives the lines of files as status, meminfo, vmstat and smaps_rollup,
// "name: value" or "name value", and of those of control groups.
func Fields(text []byte) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if i := strings.IndexAny(line, ": \t"); i > 0 && !yield(line[:i], strings.TrimSpace(line[i+1:])) {
				return
			}
		}
	}
}

// Field is the value of one of them; "" if it is not there.
func Field(text []byte, name string) string {
	for key, value := range Fields(text) {
		if key == name {
			return value
		}
	}
	return ""
}

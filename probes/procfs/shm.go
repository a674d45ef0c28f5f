package procfs

import (
	"golang.org/x/sys/unix"
)

// Shm is the file system at /dev/shm, as a process sees it.
type Shm struct {
	Device         int64 // st_dev
	Tmpfs          bool
	Capacity, Free int64 // bytes
	Nodes          int64 // files that may still be made; -1 no limit
}

// ShmPath is where a process has its /dev/shm, as we can reach it.
func ShmPath(pid int32) string { return path(pid, "root/dev/shm") }

// ReadShm looks at /dev/shm through the root of a process: it may have a mount
// namespace of its own.
func ReadShm(pid int32) (s Shm, err error) {
	at := ShmPath(pid)
	var st unix.Stat_t
	if err := unix.Stat(at, &st); err != nil {
		return s, err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(at, &fs); err != nil {
		return s, err
	}
	s = Shm{Device: int64(st.Dev), Tmpfs: fs.Type == unix.TMPFS_MAGIC, Nodes: -1,
		Capacity: int64(fs.Blocks) * fs.Bsize, Free: int64(fs.Bavail) * fs.Bsize}
	if fs.Files > 0 {
		s.Nodes = int64(fs.Ffree)
	}
	return s, nil
}

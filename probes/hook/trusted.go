package hook

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// trusted tells why what is made in a folder could be replaced by another user
// than root and us, nil if it could not. Python executes what lies in the hook's
// folder: who owns a folder above it, or may write to one, could put something else
// there. In a folder with the sticky bit, as /tmp is one, others cannot touch what
// is ours. real is an absolute path without links.
func trusted(real string) error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: "/", Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	path := "/"
	for _, name := range append([]string{"."}, strings.Split(strings.Trim(real, "/"), "/")...) {
		if name == "" {
			continue
		}
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: path + name, Err: err}
		}
		_ = unix.Close(fd)
		fd = next
		if name != "." {
			path += name + "/"
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return &fs.PathError{Op: "stat", Path: path, Err: err}
		}
		if why := replaceable(st); why != "" {
			return fmt.Errorf("%s: %s could replace the hook, which Python executes", path, why)
		}
	}
	return nil
}

// replaceable says who besides root and us may rename what is in a folder.
func replaceable(st unix.Stat_t) string {
	us := os.Geteuid()
	const ofGroup, ofAll, sticky = 0o020, 0o002, unix.S_ISVTX
	switch {
	case int(st.Uid) != us && st.Uid != 0 && int(st.Uid) != unknownOwner():
		return "its owner, user " + strconv.Itoa(int(st.Uid)) + ","
	case st.Mode&sticky != 0:
		return ""
	case st.Mode&ofAll != 0:
		return "everybody may write to it and"
	case st.Mode&ofGroup != 0 && st.Gid != 0 && (us == 0 || int(st.Gid) != os.Getegid()): // a group of one's own is usual
		return "its group may write to it and"
	}
	return ""
}

// unknownOwner is the number that folders of root show in a user namespace that does
// not know root, as in containers of users; -1 where all numbers are known. Folders
// of other users that it does not know show the same and are taken for root's.
func unknownOwner() int {
	const all = 1<<32 - 1
	ids, err := os.ReadFile("/proc/self/uid_map")
	var inside, outside, count uint64
	if n, _ := fmt.Sscan(string(ids), &inside, &outside, &count); err != nil || n == 3 && count == all {
		return -1
	}
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return n
}

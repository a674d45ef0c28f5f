package procfs

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// Mount is a file system and where it is mounted.
type Mount struct {
	Root    string // the folder of the file system that is mounted
	Point   string // where
	Type    string // ext4, tmpfs, cgroup2, …
	Options string // of the file system, joined by commas
}

// Mounts lists what is mounted in this mount namespace, in the order in which it
// was; nil where /proc does not say.
func Mounts() []Mount {
	b, err := Read(int32(os.Getpid()), "mountinfo")
	if err != nil {
		return nil
	}
	return ParseMounts(string(b))
}

// ParseMounts reads /proc/PID/mountinfo.
func ParseMounts(text string) []Mount {
	var all []Mount
	for line := range strings.Lines(text) {
		before, after, _ := strings.Cut(line, " - ")
		f, of := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(of) < 3 {
			continue
		}
		all = append(all, Mount{Root: unescape(f[3]), Point: unescape(f[4]), Type: of[0], Options: of[2]})
	}
	return all
}

// unescape undoes the octal numbers that mountinfo has for blanks.
func unescape(text string) string {
	for _, c := range []string{" ", "\t", "\n", "\\"} {
		text = strings.ReplaceAll(text, "\\0"+strconv.FormatInt(int64(c[0]), 8), c)
		text = strings.ReplaceAll(text, "\\"+strconv.FormatInt(int64(c[0]), 8), c)
	}
	return text
}

// Group is the path of the control group of a process that has a controller
// (memory, cpu), from what /proc/PID/cgroup says; "" if there is none.
func Group(cgroup, controller string) (path string, v2 bool) {
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(f) != 3:
		case slices.Contains(strings.Split(f[1], ","), controller):
			return f[2], false // where version 1 has it, version 2 has not
		case f[0] == "0" && f[1] == "":
			path, v2 = f[2], true
		}
	}
	return path, v2
}

package procfs

import (
	"slices"
	"strings"
)

// Strings splits what /proc/PID/cmdline and environ hold, and what the kernel
// hands to an exec: strings that each end with a zero byte. The last one may lack
// it, where it was cut.
func Strings(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// Cmdline is the arguments of a process, as it was started or has renamed itself
// since; nil if it is gone, is calling exec right now, or belongs to the kernel.
func Cmdline(pid int32) []string {
	b, err := Read(pid, "cmdline")
	if err != nil {
		return nil
	}
	return Strings(b)
}

// Environ is the environment that a process was started with; an error if it
// cannot be read. Before its exec is done it is empty.
func Environ(pid int32) ([]string, error) {
	b, err := Read(pid, "environ")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(Strings(b), func(v string) bool { return v == "" }), nil
}

// Join makes one line of arguments, of so many bytes at most. Programs that
// rename themselves leave empty arguments at the end.
func Join(args []string, most int) string {
	line := strings.ToValidUTF8(strings.TrimRight(strings.Join(args, " "), " "), "?")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "")
	}
	return line
}

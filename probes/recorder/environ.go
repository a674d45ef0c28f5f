package recorder

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	// added is what Go's runtime puts into the environment of a program that has
	// got capabilities from its file, in place of what was there.
	added    = "GOTRACEBACK=none"
	atSecure = 23 // AT_SECURE of getauxval(3): the kernel says that this is such a program
)

// environment is the environment that we were started with.
func environment() []string {
	env := os.Environ()
	vector, err := unix.Auxv()
	if err != nil || !slices.Contains(vector, [2]uintptr{atSecure, 1}) {
		return env
	}
	return slices.DeleteFunc(env, func(v string) bool { return v == added })
}

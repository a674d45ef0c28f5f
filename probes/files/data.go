package files

import (
	"slices"
	"strings"
)

// What is no data, as the hook has it (open_files.py), which takes the word of
// its own process: a test holds both together.
var (
	// system is folders in which no training keeps its data.
	system = []string{
		"/proc/", "/sys/", "/dev/", "/etc/", "/run/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/",
		"/usr/bin/", "/usr/sbin/", "/usr/lib", "/usr/local/lib", "/usr/share/", "/usr/libexec/",
	}

	// inside, ends and versioned, which numbers may follow, are what interpreters,
	// packages and compilers read of their own: modules, what lies beside them, and
	// shared libraries. The kernel side has left out most.
	inside    = []string{"/site-packages/", "/dist-packages/", "/lib/python3.", "/__pycache__/", ".dist-info/", ".egg-info/"}
	ends      = []string{".py", ".pyc", ".pyo", ".pyd", ".so", "/pyvenv.cfg", ".egg-link"}
	versioned = []string{".so", "/bin/python"}

	// shared is what torch and multiprocessing keep in /dev/shm.
	shared = []string{"torch_", "sem.", "psm_", "pym-", "nccl-", "__KMP_"}
)

// isData reports whether a file may belong to a dataset. Shared memory counts if
// the user put it there.
func isData(file string) bool {
	if name, ok := strings.CutPrefix(file, "/dev/shm/"); ok {
		return !is(strings.HasPrefix, name, shared)
	}
	return !is(strings.HasPrefix, file, system) && !is(strings.Contains, file, inside) && !is(strings.HasSuffix, file, ends) &&
		!is(strings.HasSuffix, strings.TrimRight(file, ".0123456789"), versioned)
}

func is(what func(s, part string) bool, file string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return what(file, part) })
}

package files

import (
	"regexp"
	"strings"
)

// system is folders in which no training keeps its data.
var system = []string{
	"/proc/", "/sys/", "/dev/", "/etc/", "/run/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/",
	"/usr/bin/", "/usr/sbin/", "/usr/lib", "/usr/local/lib", "/usr/share/", "/usr/libexec/",
}

// python is what interpreters, packages and compilers read of their own: modules,
// what lies beside them, and shared libraries. The kernel side has left out most.
var python = regexp.MustCompile(`/(site|dist)-packages/|/lib/python3\.|/__pycache__/|\.(dist|egg)-info/|` +
	`/bin/python[0-9.]*$|\.py[cod]?$|\.so(\.[0-9]+)*$|/pyvenv\.cfg$|\.egg-link$`)

// shared is what torch and multiprocessing keep in /dev/shm.
var shared = []string{"torch_", "sem.", "psm_", "pym-", "nccl-", "__KMP_"}

// isData reports whether a file may belong to a dataset. Shared memory counts if
// the user put it there.
func isData(file string) bool {
	if name, ok := strings.CutPrefix(file, "/dev/shm/"); ok {
		return !hasPrefix(name, shared)
	}
	return !hasPrefix(file, system) && !python.MatchString(file)
}

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

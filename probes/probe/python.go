package probe

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*[td]*(-dbg)?$`)

// IsPython reports whether a program is a Python, by the name of its file.
func IsPython(exe string) bool {
	return pythonName.MatchString(filepath.Base(strings.TrimSuffix(exe, " (deleted)")))
}

// Isolating gives Python's option that keeps our folder from being read: -I, -E
// (no environment), -S (no site); "" if argv has none of them.
func Isolating(argv []string) string {
	for i := 1; i < len(argv); i++ {
		a := argv[i]
		if len(a) < 2 || a[0] != '-' || strings.HasPrefix(a, "--") {
			return "" // the script, or standard input
		}
		for j, c := range a[1:] {
			switch c {
			case 'I', 'E', 'S':
				return "-" + string(c)
			case 'c', 'm':
				return ""
			case 'W', 'X', 'Q':
				if j == len(a)-2 { // its value is the next argument
					i++
				}
			default:
				continue
			}
			break
		}
	}
	return ""
}

// Carries reports whether an environment has the hook's folder in it.
func Carries(environ []string, hook string) bool {
	return slices.ContainsFunc(environ, func(v string) bool { return strings.Contains(v, hook) })
}

// Obstacle is why the hook cannot have loaded in a Python that was started with
// these arguments and this environment, nil if it is not known; "" if nothing
// spoke against it. hook is the folder on PYTHONPATH.
func Obstacle(argv, environ []string, hook string) string {
	switch flag := Isolating(argv); {
	case flag != "":
		return "started with " + flag + ", which ignores PYTHONPATH"
	case environ != nil && !Carries(environ, hook):
		if slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "PYTHONPATH=") }) {
			return "started with another PYTHONPATH in place of the recording's PYTHONPATH"
		}
		return "started without the recording's PYTHONPATH"
	}
	return ""
}

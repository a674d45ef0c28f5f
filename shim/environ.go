package shim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const variable = "PYTHONPATH"

// Environ is env with the unpacked hook in dir first on PYTHONPATH, the only
// variable that is touched: launchers that filter the environment mostly keep
// PYTHON*. Of what the user had there only the hooks in `drop` are taken out.
func Environ(env []string, dir string, drop ...string) []string {
	path := []string{dir}
	if old, ok := get(env); ok && old != "" { // set to "" means not set
		for _, p := range strings.Split(old, ":") { // an empty entry means the working directory
			if !slices.Contains(drop, p) {
				path = append(path, p)
			}
		}
	}
	out := slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, variable+"=") })
	return append(out, variable+"="+strings.Join(path, ":"))
}

// Find gives the hooks of recordings on the PYTHONPATH of env: their folders
// and sessions, outermost recording last.
func Find(env []string) (dirs []string, sessions []Session) {
	path, _ := get(env)
	for _, dir := range strings.Split(path, ":") {
		if s, ok := read(dir); ok {
			dirs, sessions = append(dirs, dir), append(sessions, s)
		}
	}
	return dirs, sessions
}

func read(dir string) (s Session, ok bool) {
	if !filepath.IsAbs(dir) {
		return s, false
	}
	text, err := os.ReadFile(filepath.Join(dir, sessionFile))
	if err != nil || json.Unmarshal(text, &s) != nil {
		return s, false
	}
	return s, s.Version > 0 && filepath.IsAbs(s.Spool)
}

func get(env []string) (value string, ok bool) {
	for _, v := range env { // the last one wins, as in Python's os.environ and in execve with glibc's setenv
		if s, found := strings.CutPrefix(v, variable+"="); found {
			value, ok = s, true
		}
	}
	return value, ok
}

package account

import (
	"path/filepath"
	"slices"
	"strings"
)

// The two ways in which Pythons lose the hook, as the recorder words them
// (probes/probe/python.go).
const (
	ignoresPath = ", which ignores PYTHONPATH"
	withoutPath = "recording's PYTHONPATH"
	startedWith = "started with "
)

// fix is how to record a Python that lost the hook: a command to type where that is
// all, else what to change. "" where neither helps.
func fix(u Unhooked, command []string) string {
	switch {
	case strings.Contains(u.Reason, ignoresPath):
		return withoutFlag(u, command)
	case strings.Contains(u.Reason, withoutPath):
		return besidePython(u, command)
	}
	return ""
}

// withoutFlag leaves out the option that the reason names: -I, -E or -S.
func withoutFlag(u Unhooked, command []string) string {
	_, flag, _ := strings.Cut(u.Reason, startedWith)
	flag, _, _ = strings.Cut(flag, ",")
	letter := strings.TrimPrefix(flag, "-")
	words := slices.Clone(command)
	for i := pythonIn(u, command) + 1; i > 0 && i < len(words) && strings.HasPrefix(words[i], "-"); i++ {
		rest := strings.ReplaceAll(words[i], letter, "")
		if rest == words[i] {
			continue
		}
		if words[i] = rest; rest == "-" {
			words = slices.Delete(words, i, i+1)
		}
		return "dptrace record -- " + strings.Join(words, " ")
	}
	return "start that Python without " + flag + " while you record"
}

// pythonIn is where in the recorded command the Python begins; -1: nowhere.
func pythonIn(u Unhooked, command []string) int {
	for i := range command {
		if strings.Join(command[i:], " ") == u.Cmdline {
			return i
		}
	}
	return -1
}

// besidePython starts the recording behind what sets the environment.
func besidePython(u Unhooked, command []string) string {
	if i := pythonIn(u, command); i > 0 && filepath.Base(command[0]) == "env" {
		dptrace := "dptrace"
		if slices.Contains(command, "-i") || slices.Contains(command, "-") || slices.Contains(command, "--ignore-environment") {
			dptrace = "$(which dptrace)" // there is no PATH behind it
		}
		return strings.Join(command[:i], " ") + " " + dptrace + " record -- " + u.Cmdline
	}
	return "where PYTHONPATH is set, keep what is in it (PYTHONPATH=/your/folder:$PYTHONPATH), or record there: dptrace record -- " + u.Cmdline
}

package poll

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/procfs"
)

// shells show nobody what they do with exit codes, but for what they were told to do.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"}

const mostScript = 64 << 10 // bytes of a script that are read

// status is what a shell has the last command's exit code by.
var status = regexp.MustCompile(`(?m)^[^#\n]*(\$\?|\$\{\?\}|PIPESTATUS|pipestatus|\btrap\b)`)

// looksAtStatus reports whether a process is a shell whose commands look at the exit
// code of one of them: in its script, or behind -c. What cannot be read does not.
func looksAtStatus(pid int32, exe string) bool {
	if !slices.Contains(shells, filepath.Base(exe)) {
		return false
	}
	args := procfs.Cmdline(pid)
	for i, arg := range args {
		switch {
		case i == 0 || arg == "--":
		case strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "c") && i+1 < len(args):
			return status.MatchString(args[i+1])
		case !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+"):
			return status.MatchString(script(pid, arg))
		}
	}
	return false
}

// script is the text of a file as a process names it. It may be anybody's: no device
// or pipe is waited for.
func script(pid int32, name string) string {
	at := fmt.Sprintf("/proc/%d/cwd/%s", pid, name)
	if filepath.IsAbs(name) {
		at = fmt.Sprintf("/proc/%d/root%s", pid, name)
	}
	f, err := os.OpenFile(at, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(f, mostScript)) // what was read of it
	return string(text)
}

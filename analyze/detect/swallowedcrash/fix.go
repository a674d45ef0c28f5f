package swallowedcrash

import (
	"path/filepath"
	"strings"
)

// fix is the line that the caller lacks: the caller's command line says in
// which language.
func (r *run) fix(c *crashed) string {
	caller := c.by
	if caller == nil {
		caller = c.Parent
	}
	line := ""
	if caller != nil {
		line = caller.Cmdline
	}
	words := strings.Fields(line + " ?")
	program := filepath.Base(words[0])
	child := c.Cmdline
	if caller != nil && caller.Exe != "" {
		program = filepath.Base(caller.Exe)
	}
	switch {
	case strings.HasPrefix(program, "python") && (c.Kind == "fork" || spawned(c.Process)):
		return "process.join()\nif process.exitcode != 0:\n    sys.exit(f\"training ended with {process.exitcode}\")"
	case strings.HasPrefix(program, "python"):
		return "result = subprocess.run(command)      # " + child + "\n" +
			"sys.exit(result.returncode)           # or subprocess.run(command, check=True), which raises"
	case program == "bash" || program == "zsh" || program == "ksh":
		return "set -eo pipefail      # at the top of " + script(words) + ": it then ends with the exit code of the first command that fails"
	case program == "sh" || program == "dash" || program == "busybox" || program == "ash":
		return "set -e      # at the top of " + script(words) + ": it then ends with the exit code of the first command that fails"
	}
	return "Let `" + program + "` end with the exit code of `" + child + "`."
}

// script of a shell's command line.
func script(words []string) string {
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && w != "?" {
			if strings.HasSuffix(w, ".sh") || strings.Contains(w, "/") || len(words) <= 3 {
				return w
			}
			break
		}
		if strings.HasPrefix(w, "-") && strings.Contains(w, "c") {
			return "its commands"
		}
	}
	return "its script"
}

package unevenshards

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// failed says how it is known that a rank, or the command that ran it, failed;
// "" if it is not. other: for a reason that may be another.
func (r *ranks) failed(p *timeline.Process) (how string, other bool) {
	for i := len(p.Raised) - 1; i >= 0; i-- {
		if e := &p.Raised[i]; e.Stage == "exit" {
			line, _, _ := strings.Cut(e.Message, "\n")
			return fmt.Sprintf("ended with %s: %s", e.Type, line), !left.MatchString(e.Type + ": " + e.Message)
		}
	}
	switch code := r.ExitCodeOf(p.Part); {
	case p.EndedBadly() && p.Exit.Signal != 0:
		return fmt.Sprintf("was ended by signal %d", p.Exit.Signal), p.Exit.Signal == timeline.SIGBUS || p.Exit.Signal == timeline.SIGSEGV
	case p.EndedBadly():
		return fmt.Sprintf("ended with exit code %d", p.Exit.ExitCode), false
	case p.EndKnown() || code <= 0:
		return "", false
	default:
		return fmt.Sprintf("began no other pass, and the recorded command ended with exit code %d", code), false
	}
}

// left is what the backends say to a rank whose peer is gone or silent.
var left = regexp.MustCompile(`(?i)DistBackendError|DistNetworkError|gloo|nccl|monitored.?barrier|connection (closed|reset)|` +
	`broken pipe|timed? ?out|wait(ing)? timeout|peer`)

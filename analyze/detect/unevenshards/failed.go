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

// failure says by what a rank failed that no other rank had a part in; "" if by
// nothing of that kind. A rank whose peer is gone gets an error of torch's, or is
// ended by its launcher; so does one whose peer is late.
func failure(p *timeline.Process, ended bool) string {
	for i := len(p.Raised) - 1; i >= 0; i-- {
		if e := &p.Raised[i]; e.Stage == "exit" && e.Type != "KeyboardInterrupt" {
			fromTorch := e.Type == "RuntimeError" || strings.HasPrefix(e.Type, "torch.")
			if fromTorch && (!ended || left.MatchString(e.Type+": "+e.Message)) {
				return ""
			}
			line, _, _ := strings.Cut(e.Message, "\n")
			return fmt.Sprintf("ended with %s: %s", e.Type, line)
		}
	}
	if !p.EndedBadly() {
		return ""
	}
	switch p.Exit.Signal {
	case 0:
		if ended && p.Orderly() && p.Exit.ExitCode < 128 { // else a handler of the launcher's signal
			return fmt.Sprintf("ended with exit code %d, which it chose", p.Exit.ExitCode)
		}
	case timeline.SIGSEGV, timeline.SIGBUS, timeline.SIGILL, timeline.SIGFPE:
		return "was ended by " + timeline.SignalName(p.Exit.Signal)
	case timeline.SIGKILL:
		if fatal := p.Fatal(); p.Oom != nil || fatal != nil && !timeline.FromAbove(p, fatal) {
			return "was ended by SIGKILL"
		}
	}
	return ""
}

// left is what the backends say to a rank whose peer is gone or silent.
var left = regexp.MustCompile(`(?i)DistBackendError|DistNetworkError|gloo|nccl|monitored.?barrier|connection (closed|reset)|` +
	`broken pipe|timed? ?out|wait(ing)? timeout|peer`)

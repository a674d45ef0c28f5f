// Package report prints what an analysis says: Text for people, JSON for
// programs. Both say the same; JSON says all of it. A form is a line of Formats.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/account"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Format is one form of the report: a line of Formats.
type Format struct {
	Name  string // of --format
	Write func(io.Writer, *analyze.Result, Options) error
	// Warns says that what is incomplete and unused is in it; else it is for
	// programs, and is said on stderr.
	Warns bool
}

// Formats is all forms of the report; the first is the default.
var Formats = []Format{
	{"text", Text, true},
	{"json", JSON, false},
}

// FormatNames is their names.
func FormatNames() (names []string) {
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

// Fails reports whether a result has a finding at or above a certainty that
// dptrace.toml does not accept.
func Fails(r *analyze.Result, atLeast finding.Certainty) bool {
	return slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.Accepted == "" && f.Certainty >= atLeast })
}

// Unused says, line by line, which entries of dptrace.toml accept nothing.
func Unused(r *analyze.Result) []string {
	var lines []string
	for _, e := range r.Unused {
		at := " at " + e.At
		if e.At == "" {
			at = " without a loader (at = \"file:line\" names one)"
		}
		lines = append(lines, fmt.Sprintf("%s accepts nothing: there is no finding of %s%s", e.Place, e.Rule, at))
	}
	return lines
}

// Incomplete says, line by line, what of the run was cut off, was lost, was not
// watched although it used torch, or cannot be read: then it was not all seen.
// Tables of a newer dptrace are not counted: nothing else suffers.
func Incomplete(r *analyze.Result) []string {
	return slices.Concat(cutOrDamaged(r), lost(r), unwatched(r))
}

// unwatched says which Pythons used torch, or may have where nothing else did, and
// were not watched from inside: one line for each reason.
func unwatched(r *analyze.Result) (lines []string) {
	count := map[string]int{}
	first := map[string]account.Unhooked{}
	var reasons []string
	for _, u := range r.Processes.Unhooked {
		if !u.Torch && !r.Processes.Unwatched() {
			continue
		}
		if count[u.Reason]++; count[u.Reason] == 1 {
			first[u.Reason] = u
			reasons = append(reasons, u.Reason)
		}
	}
	for _, reason := range reasons {
		u := first[reason]
		who := fmt.Sprintf("pid %d", u.Pid)
		if n := count[reason] - 1; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
		did := " used torch and was"
		switch {
		case count[reason] > 1 && u.Torch:
			did = " used torch and were"
		case count[reason] > 1:
			did = " were"
		case !u.Torch:
			did = " was"
		}
		lines = append(lines, who+did+" not watched from inside: "+reason)
	}
	return lines
}

// cutOrDamaged says what of the trace is not there or cannot be read.
func cutOrDamaged(r *analyze.Result) (lines []string) {
	for _, p := range r.Run.Parts {
		if !p.Sealed {
			lines = append(lines, "the recording of "+p.Name+" was cut before the program ended")
		}
	}
	for _, p := range r.Run.Problems {
		if p.Kind != traces.Newer {
			lines = append(lines, p.String())
		}
	}
	return lines
}

// lost says what was not recorded although it should have been.
func lost(r *analyze.Result) (lines []string) {
	for _, l := range r.Lost {
		if l.Source == "trace" {
			continue // in cutOrDamaged, with its place
		}
		count := "an unknown number of"
		if l.Count > 0 {
			count = fmt.Sprint(l.Count)
		}
		what := "records"
		if l.Table != "" {
			what = l.Table + " records"
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s (%s)", count, what, l.Reason, l.Source))
	}
	return lines
}

// folders of a run in their order.
func folders(r *analyze.Result) []string {
	var names []string
	for _, p := range r.Run.Parts {
		if !slices.Contains(names, p.Trace) {
			names = append(names, p.Trace)
		}
	}
	return names
}

// distinct is the different values of a fact of the run's processes, joined by
// commas; "" if none says it.
func distinct(r *analyze.Result, fact func(*timeline.Process) string) string {
	var all []string
	for _, p := range r.Timeline.Processes {
		if v := fact(p); v != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func python(p *timeline.Process) string { return p.Python }
func torch(p *timeline.Process) string  { return p.Torch }

// ranks is how many ranks were seen; a program without torch.distributed is one.
func ranks(r *analyze.Result) int {
	seen := map[int32]bool{}
	for _, p := range r.Timeline.Processes {
		if p.Rank >= 0 {
			seen[p.Rank] = true
		}
	}
	return max(len(seen), 1)
}

func duration(r *analyze.Result) time.Duration {
	return time.Duration(r.Timeline.End - r.Timeline.Begin)
}

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// Options of a report.
type Options struct {
	Width   int  // of a line of text, in characters; 0: 100
	Color   bool // ANSI colours
	Unicode bool // characters beyond ASCII of our own; those of the user's names are always kept
	Verbose bool // every check and every piece of evidence
}

// Columns of labels: of the parts of a finding, and of the lines below them.
const (
	factColumn    = 11
	summaryColumn = 17
)

// At most this many notes and loaders are shown; JSON has all.
const most = 6

// Text writes the report for people: what is wrong first, then the run, what was
// checked, and what recording has cost. Where nothing is wrong these are 12 lines
// at most, if the command and the paths are not long.
func Text(w io.Writer, r *analyze.Result, o Options) error {
	p := &page{Options: o, w: w, printed: map[string]string{}}
	if p.Width <= 0 {
		p.Width = 100
	}
	p.headline(r)
	p.unhooked(r)
	p.findings(r)
	p.accepted(r)
	p.run(r)
	if o.Verbose {
		p.allChecks(r.Checks)
	} else {
		p.countedChecks(r.Checks)
	}
	p.waits(r)
	p.fetched(r)
	p.loopTimes(r)
	p.unused(r)
	p.unwatched(r)
	p.losses(r)
	p.overhead(r)
	p.again(r)
	return p.err
}

// headline is the answer in one line.
func (p *page) headline(r *analyze.Result) {
	counts := map[finding.Certainty]int{}
	accepted := 0
	for _, f := range r.Findings {
		if f.Accepted != "" {
			accepted++
		} else {
			counts[f.Certainty]++
		}
	}
	clean := slices.ContainsFunc(r.Checks, func(c finding.Check) bool { return c.Status == finding.Clean })
	s, text := red, howMany(counts[finding.Proven], counts[finding.Likely])
	switch {
	case counts[finding.Proven] > 0:
	case counts[finding.Likely] > 0:
		s = yellow
	case r.Processes.Unwatched():
		s, text = red, "Not watched, no verdict"
	case !clean && len(Incomplete(r)) > 0:
		s, text = yellow, "No verdict, the recording is not complete"
	case !clean:
		s, text = yellow, "No verdict, nothing could be checked"
	case len(Incomplete(r)) > 0:
		s, text = yellow, "Nothing found, but the recording is not complete"
	case failed(r.Timeline.ExitCode):
		s, text = yellow, "Nothing wrong found, though the program failed"
	case accepted > 0:
		s, text = green, "Nothing wrong found but what was accepted"
	default:
		s, text = green, "Nothing wrong found"
	}
	command := cmp.Or(r.Timeline.CommandLine(), "a command that is not known")
	for i, l := range wrap(p.clean(text+": "+command), p.Width) {
		if i == 0 && strings.HasPrefix(l, text) {
			p.line(p.paint(s, text) + p.paint(bold, strings.TrimPrefix(l, text)))
			continue
		}
		p.line(p.paint(bold, l))
	}
}

// failed reports whether a program ended by an error, and not by Ctrl-C or SIGTERM; -1: how is not known.
func failed(code int) bool { return code > 0 && code != 130 && code != 143 }

// unhooked says, where nothing was watched, why, and what to type.
func (p *page) unhooked(r *analyze.Result) {
	if !r.Processes.Unwatched() {
		return
	}
	u := r.Processes.Unhooked[0]
	for _, other := range r.Processes.Unhooked {
		if other.Torch && !u.Torch {
			u = other
		}
	}
	p.entry(0, summaryColumn, red, "why", "dptrace's hook was not in the Python of this run: "+u.Cmdline+" was "+u.Reason)
	if u.Fix != "" { // in one line: it can be copied
		p.line(p.label(bold, summaryColumn, "record it so") + p.clean(strings.ReplaceAll(u.Fix, "\n", " ")))
	}
}

// howMany is "8 findings, 6 proven and 2 likely".
func howMany(proven, likely int) string {
	text := words.Count(proven+likely, "finding") + ", "
	switch {
	case likely == 0 && proven == 1:
		return text + "proven"
	case likely == 0:
		return text + "all proven"
	case proven == 0 && likely == 1:
		return text + "likely"
	case proven == 0:
		return text + "all likely"
	}
	return fmt.Sprintf("%s%d proven and %d likely", text, proven, likely)
}

// again is the command that shows that what was found is mended.
func (p *page) again(r *analyze.Result) {
	for _, f := range r.Findings {
		if f.Accepted == "" && f.Certainty > finding.Note {
			p.entry(0, summaryColumn, grey, "check the fix", r.Timeline.RecordAgain())
			return
		}
	}
}

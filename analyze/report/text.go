package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/finding"
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
	if o.Width == 0 {
		o.Width = 100
	}
	p := &page{Options: o, w: w, printed: map[string]string{}}
	if p.Width <= 0 {
		p.Width = 100
	}
	p.headline(r)
	p.findings(r)
	p.accepted(r)
	p.run(r)
	if o.Verbose {
		p.allChecks(r.Checks)
	} else {
		p.countedChecks(r.Checks)
	}
	p.waits(r)
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
	var parts []string
	for _, c := range []finding.Certainty{finding.Proven, finding.Likely} {
		if counts[c] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[c], c))
		}
	}
	clean := slices.ContainsFunc(r.Checks, func(c finding.Check) bool { return c.Status == finding.Clean })
	s, text := red, strings.Join(parts, ", ")
	switch {
	case counts[finding.Proven] > 0:
	case counts[finding.Likely] > 0:
		s = yellow
	case !clean:
		s, text = yellow, "Nothing found, and nothing that can be called clean"
	case len(Incomplete(r)) > 0:
		s, text = yellow, "Nothing found, but the recording is not complete"
	case accepted > 0:
		s, text = green, "Nothing wrong found but what was accepted"
	default:
		s, text = green, "Nothing wrong found"
	}
	command := strings.Join(r.Timeline.Command, " ")
	if command == "" {
		command = "a command that is not known"
	}
	for i, l := range wrap(p.clean(text+": "+command), p.Width) {
		if i == 0 && strings.HasPrefix(l, text) {
			p.line(p.paint(s, text) + p.paint(bold, strings.TrimPrefix(l, text)))
			continue
		}
		p.line(p.paint(bold, l))
	}
}

// again is the command that shows that what was found is mended.
func (p *page) again(r *analyze.Result) {
	for _, f := range r.Findings {
		if f.Accepted == "" && f.Certainty > finding.Note {
			p.entry(0, summaryColumn, grey, "record again", r.Timeline.RecordAgain())
			return
		}
	}
}

package report

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/evidence/fetches"
	"github.com/dptrace/dptrace/analyze/evidence/offcpu"
	"github.com/dptrace/dptrace/analyze/words"
)

// fetched says what the fetches of each loader spend their time on, as far as
// some of them were looked at.
func (p *page) fetched(r *analyze.Result) {
	if !p.Verbose {
		return
	}
	var lines []string
	for _, ranks := range r.Timeline.ByLoader() {
		if s := r.Fetches.Of(ranks...); s.Fetches > 0 {
			lines = append(lines, fmt.Sprintf("#%d %s: %s", ranks.ID(), ranks[0].At(), spent(s, r.Blocked.Of(ranks...))))
			lines = append(lines, transforms(s)...)
		}
	}
	p.list(grey, "fetches", lines)
}

// leastPart of the fetches is told of what they are blocked in.
const leastPart = 0.01

// spent is the parts of fetches.
func spent(s *fetches.Split, in *offcpu.Blocked) string {
	of := sharesOf(s, in)
	share := func(of float64) string { return fmt.Sprintf("%.1f %%", 100*of) }
	text := share(of.onCPU) + " on a processor, "
	if s.QueueKnown == s.Fetches {
		text += share(of.queue) + " waiting for one, " + share(of.blocked) + " blocked"
	} else {
		text += share(of.queue+of.blocked) + " blocked or waiting for one"
	}
	text += fmt.Sprintf(" (± %.1f)", 100*s.Deviation())
	var what []string
	for _, part := range of.in {
		if part.Share >= leastPart {
			what = append(what, string(part.Kind)+" "+share(part.Share))
		}
	}
	if len(what) > 0 {
		text += ": " + strings.Join(what, "; ")
	}
	switch {
	case s.ReadKnown > 0 && s.Read == 0 && s.Disk == 0:
		text += ", nothing read"
	case s.ReadKnown > 0:
		text += fmt.Sprintf(", %s read in each", words.Bytes(s.Read/int64(s.ReadKnown)))
		if s.Disk > 0 {
			text += fmt.Sprintf(" (%s from disk)", words.Bytes(s.Disk/int64(s.ReadKnown)))
		}
	}
	return text + fmt.Sprintf("; %.4g ms each, %d of them looked at", 1e3*s.Wall.Seconds()/float64(s.Fetches), s.Fetches)
}

// transforms has a line for each chain, and for each of its places that was
// timed: its share of the fetch.
func transforms(s *fetches.Split) (lines []string) {
	for _, t := range s.Transforms() {
		share := fmt.Sprintf("%.1f %% (± %.1f)", 100*t.Share(), 100*t.Deviation())
		switch {
		case t.Index < 0 && t.Why != "":
			lines = append(lines, fmt.Sprintf("%s (%s): not timed: %s", t.Path, words.Last(t.Class), untimed(t.Why)))
		case t.Index < 0 && t.Fetches == 0:
			lines = append(lines, fmt.Sprintf("%s (%s): not timed: its own code was not seen to call its places, all and in turn", t.Path,
				words.Last(t.Class)))
		case t.Index < 0:
			lines = append(lines, fmt.Sprintf("%s (%s): %s, in %s", t.Path, words.Last(t.Class), share, words.Count(t.Fetches, "fetch")))
		case t.Fetches > 0:
			lines = append(lines, fmt.Sprintf("  %d %s: %s%s", t.Index, words.Last(t.Class), share, written(t.File, t.Line)))
		case t.Why != "" && s.Timed(t.Chain):
			lines = append(lines, fmt.Sprintf("  %d %s: not timed: %s", t.Index, words.Last(t.Class), t.Why))
		}
	}
	return lines
}

// untimed is why a chain is not timed.
func untimed(why string) string {
	if strings.HasPrefix(why, "Python ") {
		return why + " cannot tell, 3.12.1 and later can"
	}
	return why
}

// written is ", FILE:LINE"; "" where that is not known.
func written(file string, number int32) string {
	if file == "" {
		return ""
	}
	return fmt.Sprintf(", %s:%d", filepath.Base(file), number)
}

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/evidence/copies"
	"github.com/dptrace/dptrace/analyze/evidence/fetches"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/evidence/offcpu"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// loopTimes shows where the time of loops went: of those that wait for data, with -v
// of all.
func (p *page) loopTimes(r *analyze.Result) {
	if r.Loops == nil {
		return
	}
	for _, ranks := range r.Timeline.ByLoader() {
		found := slices.ContainsFunc(r.Findings, func(f finding.Finding) bool {
			return f.Rule == "loader-bottleneck" && f.Loader.ID == ranks.ID() && f.Certainty > finding.Note
		})
		if l := r.Loops.Of(ranks); l != nil && l.Delivered > 0 && (found || p.Verbose) {
			within := stages{r.Fetches.Of(ranks...), r.Blocked.Of(ranks...), copiesOf(r, ranks)}
			p.list(bold, fmt.Sprintf("time of loop #%d", ranks.ID()), p.loopTime(l, within))
		}
	}
}

// barWidth is how many characters stand for all of a loop's time.
const barWidth = 40

// stages is what is known of the inside of a loop's stages.
type stages struct {
	fetch   *fetches.Split
	blocked *offcpu.Blocked
	copied  copies.Ranks
}

// loopTime is a bar and a table, then what is slower than the rest. Parts of the
// fetch are in it where they take a hundredth of the loop's time.
func (p *page) loopTime(l *looptime.Loop, within stages) []string {
	lines := append([]string{p.bar(l)}, table(l, within)...)
	for _, s := range l.Stragglers() {
		who := fmt.Sprintf("worker %d", s.Worker)
		if s.Worker < 0 {
			who = fmt.Sprintf("rank %d", s.Rank)
		} else if s.Rank >= 0 {
			who += fmt.Sprintf(" of rank %d", s.Rank)
		}
		lines = append(lines, fmt.Sprintf("slower than the others: %s, %s a batch, they %s", who, millis(s.Mean), millis(s.Others)))
	}
	return append(lines, slowest(l)...)
}

// copiesOf a loader's batches to a device; nil: it could not be told.
func copiesOf(r *analyze.Result, ranks timeline.Ranks) (all copies.Ranks) {
	_ = collect.Guard("copies in the report", func() { all = collect.Of(r.Evidence, copies.Source).At(ranks) })
	return all
}

// table of a loop: what it waited for, with the parts of the fetch, and its step, with the copies to the device in
// it that its thread was seen to wait for.
func table(l *looptime.Loop, within stages) (lines []string) {
	type row struct{ name, took, share, mean string }
	rows := []row{{"", "time", "", "a batch"}}
	add := func(name string, took, mean time.Duration) {
		rows = append(rows, row{name, words.Seconds(took.Seconds()), share(took, l.Total), millis(mean)})
	}
	for _, s := range l.Stages {
		if s.Of == "" {
			add("waits: "+s.Name, s.Waited, s.Mean())
		}
		if s.Name == looptime.Fetch {
			for _, part := range parts(within.fetch, within.blocked, s) {
				if part.Waited >= l.Total/100 {
					add("  "+part.Name, part.Waited, part.Mean())
				}
			}
		}
	}
	add("step", l.Step(), l.Step()/time.Duration(l.Delivered))
	if h := within.copied.H2D(); h != nil {
		if blocked := h.All().Blocked; blocked > 0 && blocked >= l.Total/100 {
			add("  copies to the device", blocked, blocked/time.Duration(h.Steps))
		}
	}
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r.name))
	}
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("%-*s %9s %6s %10s", width, r.name, r.took, r.share, r.mean))
	}
	return lines
}

// bar is the loop's time in one line: waiting, then the step.
func (p *page) bar(l *looptime.Loop) string {
	waits, step := "#", "."
	if p.Unicode {
		waits, step = "█", "░"
	}
	n := min(max(int(l.Share()*barWidth+0.5), 0), barWidth)
	return fmt.Sprintf("%s%s %s waiting, %s step", strings.Repeat(waits, n), strings.Repeat(step, barWidth-n), words.Percent(l.Share()),
		words.Percent(1-l.Share()))
}

// slowest is the batches that took longest, and samples that are in several.
func slowest(l *looptime.Loop) (lines []string) {
	const shown = 2
	for _, r := range l.Ranks {
		var common []string
		if len(r.Repeat) > 0 {
			common = append(common, words.Ints("sample", r.Repeat))
		}
		if len(r.Files) > 0 {
			common = append(common, "opened "+words.List(paths(r, r.Files)))
		}
		if len(common) > 0 && len(lines) < shown {
			lines = append(lines, "in slow batches of several passes: "+strings.Join(common, "; "))
		}
		for _, s := range r.Slow[:min(len(r.Slow), shown)] {
			text := fmt.Sprintf("slow: batch %d of pass %d, %s", s.Batch, s.Pass, millis(time.Duration(s.NS)))
			if len(s.Indices) > 0 {
				text += ": " + words.Ints("sample", s.Indices)
			}
			if len(s.Files) > 0 {
				text += "; opened " + words.List(paths(r, s.Files))
			}
			if lines = append(lines, text); len(lines) >= 2*shown {
				return lines
			}
		}
	}
	return lines
}

// paths of files, as they are written in the report.
func paths(r *looptime.Rank, files []string) (short []string) {
	for _, f := range files {
		short = append(short, timeline.Place(r.Loader.Process.Cwd, f, 0))
	}
	return short
}

func share(part, all time.Duration) string {
	if all <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*part.Seconds()/all.Seconds())
}

func millis(d time.Duration) string { return fmt.Sprintf("%.3g ms", float64(d)/1e6) }

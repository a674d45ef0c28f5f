// Package loaderbottleneck is the rule loader-bottleneck: the training loop waits
// for data. docs/rules/loader-bottleneck.md explains it.
package loaderbottleneck

import (
	"fmt"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/evidence/offcpu"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "loader-bottleneck",
	Title:   "The training loop waits for data",
	Sources: []collect.Any{looptime.Source, offcpu.Source},
	Excuses: []detect.Excuse{{
		Text: "what the dataset gives comes at a pace of its own: a live source, a simulator, a limit on purpose. " +
			"The fetches hardly computed, and hardly read.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return all(f, unpaced) },
	}, {
		Text:     "only the first pass waits, and fills a cache for those to come.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*waits).lasts() },
	}, {
		Text:     "an accelerator was still at work on steps queued before, while the loop waited.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return all(f, alone) },
	}, {
		Text:     "other programs on the machine took the processors.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return all(f, undisturbed) },
	}},
	Judge: judge,
}

// From when on waiting is worth a word: of the rank that waits most, in the loops
// over this loader, and with or without the longest of the waits and of the steps.
const (
	shortest = 10 * time.Second // of the loop
	least    = 3 * time.Second  // waited
	matters  = 0.10             // of the loop's time
	ofRun    = 0.01             // of the run's time
	longest  = 0.02             // of the waits, or steps: one pause is none of the loader
)

// waits is what the rule knows of one loop.
type waits struct {
	*detect.Case
	*looptime.Loop
	worst *looptime.Rank // that waited for the largest share of its time
	in    *offcpu.Blocked
}

func judge(c *detect.Case) detect.Verdict {
	l := detect.Of(c, looptime.Source).Of(c.Loaders)
	if l == nil || l.Delivered == 0 {
		return detect.CannotTell("no loader's loop took more than one batch")
	}
	w := &waits{Case: c, Loop: l}
	for _, r := range l.Ranks {
		if w.worst == nil || r.Share() > w.worst.Share() {
			w.worst = r
		}
	}
	w.in = detect.Of(c, offcpu.Source).Of(w.worst.Loader)
	aside, known := l.Aside()
	role := c.Loaders.Role()
	switch {
	case role == timeline.Eval:
		return w.evaluation()
	case aside:
		return detect.CannotTell("next() is called by another thread than the main one, which may have worked meanwhile")
	case w.worst.Total < shortest:
		return detect.CannotTell(fmt.Sprintf("the loop ran for %s, which is too short", words.Seconds(w.worst.Total.Seconds())))
	}
	return w.verdict(role, known)
}

// verdict on a loop that does not evaluate.
func (w *waits) verdict(role timeline.Role, known bool) detect.Verdict {
	short, long := w.worst.Without(longest)
	share := w.worst.Share()
	later, several := w.Later()
	switch {
	case max(share, short, long) < matters:
		return detect.Clean("not your bottleneck: " + w.amount())
	case share < matters && long >= matters && w.worst.Waited >= least:
		return detect.CannotTell(fmt.Sprintf("%s; without a few long pauses of its own, %s", w.amount(), words.Percent(long)))
	case min(share, short) < matters || w.worst.Waited < least:
		return detect.Clean(fmt.Sprintf("%s, but no more than %s without the longest %s of the waits", w.amount(), words.Percent(short),
			words.Percent(longest)))
	case w.worst.Waited.Seconds() < ofRun*w.run().Seconds():
		return detect.Clean(fmt.Sprintf("%s, which is less than a hundredth of the run", w.amount()))
	case several && later < matters:
		reason := fmt.Sprintf("no more than a note: only the first pass waits, later ones %s", words.Percent(later))
		return detect.Clean(reason).Noting(w.finding(finding.Note))
	case role != timeline.Train || !known:
		return detect.Found(w.amount(), w.finding(finding.Likely))
	}
	return detect.Found(w.amount(), w.finding(finding.Proven))
}

// evaluation loops may wait: it is a note where it is much of the run.
func (w *waits) evaluation() detect.Verdict {
	if w.worst.Waited >= least && w.worst.Share() >= matters && w.worst.Waited.Seconds() >= matters*w.run().Seconds() {
		return detect.Clean("no more than a note: an evaluation").Noting(w.finding(finding.Note))
	}
	return detect.NotApplicable("an evaluation: " + w.amount())
}

// run is how long the run took.
func (w *waits) run() time.Duration { return time.Duration(w.Timeline.End - w.Timeline.Begin) }

// amount is how much of the loop's time was waited.
func (w *waits) amount() string {
	text := fmt.Sprintf("%s of the loop's time waits for data (%s of %s)", words.Percent(w.worst.Share()),
		words.Seconds(w.worst.Waited.Seconds()), words.Seconds(w.worst.Total.Seconds()))
	if rank := w.worst.Loader.Rank(); rank >= 0 && len(w.Ranks) > 1 {
		text += fmt.Sprintf(", on rank %d", rank)
	}
	return text
}

// limits is the stage that was waited for longest.
func (w *waits) limits() looptime.Stage {
	var most looptime.Stage
	for _, s := range w.worst.Stages {
		if s.Waited > most.Waited {
			most = s
		}
	}
	return most
}

// lasts reports whether later passes wait as well, or the one pass that there is
// computes what it waits for.
func (w *waits) lasts() bool {
	if later, several := w.Later(); several {
		return later >= matters
	}
	share, ok := w.worst.Computing()
	return ok && share >= computes
}

func all(f *finding.Finding, of func(*waits, *looptime.Rank) bool) bool {
	w := f.Facts.(*waits)
	return of(w, w.worst)
}

// A fetch computes if it has a processor for half of its time, and reads if so many
// bytes of a batch come from disks, or if it is blocked in files for half of its time:
// of the file systems of user space nobody counts what they read.
const (
	computes = 0.5
	reads    = 64 << 10
)

// unpaced reports whether the fetches were seen at work, or something else than a
// fetch is what the loop waits for.
func unpaced(w *waits, r *looptime.Rank) bool {
	if s := w.limits(); s.Name != looptime.Fetch && s.Of != looptime.Fetch {
		return true
	}
	busy, ok := r.Computing()
	bytes, counted := r.Reading()
	held, _ := r.Held()
	// What waits for a processor may want it for no more than to go on sleeping.
	return ok && busy >= computes*(1-min(held, 1)) || counted && bytes >= reads || w.in.Files() >= computes
}

// alone reports whether no accelerator can have been at work instead: there is
// none, or the workers were never idle, so that it is they who set the pace.
func alone(_ *waits, r *looptime.Rank) bool { return r.Accelerators() == "none" || r.Saturated() }

// undisturbed reports whether the loop would wait as well if the fetches had never
// waited for a processor that another program had: they set its pace.
func undisturbed(_ *waits, r *looptime.Rank) bool {
	disturbance, known := r.Disturbance(r.Fetching())
	if !known {
		return false
	}
	total := r.Total.Seconds() * (1 - disturbance)
	if alone, counted := r.Undisturbed(); disturbance > 0 && counted {
		total = min(total, max(alone.Seconds(), r.Step().Seconds()))
	}
	return total-r.Step().Seconds() >= matters*total
}

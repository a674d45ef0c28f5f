// Package copypinnedsync is the rule copy-pinned-sync: batches are copied to the
// device out of pinned memory, and the thread waits for each copy all the same.
// docs/rules/copy-pinned-sync.md explains it.
package copypinnedsync

import (
	"fmt"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/copies"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "copy-pinned-sync",
	Title:   "Batches are pinned, and the thread waits for each copy of them",
	Sources: []collect.Any{copies.Source},
	Excuses: []detect.Excuse{{
		Text:     "what is copied is not the batch, but weights, states of the optimizer or activations that stay in the host's memory.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*seen).sure() },
	}, {
		Text:     "each step waits for the device in any case, by .item(), .cpu() or synchronize(): then most of the waiting only moves there.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return !f.Facts.(*seen).worst.ToHost },
	}, {
		Text:     "the program writes to the same pinned memory again, and waits for the copy itself before it does.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*seen).pins() },
	}, {
		Text:     copies.Excuse,
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*seen).worst.Driver() },
	}},
	Judge: judge,
}

// seen is the copies of one loader's batches.
type seen struct {
	*detect.Case
	ranks copies.Ranks
	worst *copies.Rank
	class copies.Class // of the copies that the finding is about: Waited, or Device
}

func (s *seen) sure() bool { return s.worst.Sure(s.class) }

// unasked is how soon after a copy a wait begins that torch makes itself, at the most: what Python calls after it
// takes longer.
const unasked = 5 * time.Microsecond

// pins: the loader itself has pinned them, into memory that nobody writes to again: it is another one each time,
// or the program has had no time to ask for the wait.
func (s *seen) pins() bool {
	return s.worst.Loader.First().PinMemory && (s.worst.Wanders(s.class) || s.worst.Cost(s.class).Gap <= unasked)
}

func judge(c *detect.Case) detect.Verdict {
	s := &seen{Case: c, ranks: detect.Of(c, copies.Source).At(c.Loaders), class: copies.Waited}
	if s.worst = s.ranks.Worst(copies.Waited); s.worst != nil {
		return s.found()
	}
	pinned := s.ranks.Count(copies.Async, copies.Waited, copies.Device)
	switch unknown, unjudged := s.ranks.Unknown(), s.ranks.Unjudged(copies.Unjudged); {
	case s.ranks.Bare():
		return detect.NotApplicable("nothing is copied to a device")
	case unknown != "":
		return detect.CannotTell(unknown)
	case s.ranks.Quiet():
		return detect.NotApplicable("nothing of more than 64 KiB is copied to a device between its batches")
	case unjudged != "":
		return detect.CannotTell(unjudged)
	case pinned == 0:
		return detect.NotApplicable("nothing is copied from pinned memory")
	case s.ranks.Count(copies.Waited) > 0 || pinned < copies.Enough:
		return detect.CannotTell(fmt.Sprintf("too few copies to judge: %d from pinned memory, of which %d are waited for", pinned,
			s.ranks.Count(copies.Waited)))
	}
	if why := s.ranks.Partial(); why != "" {
		return detect.CannotTell(why)
	}
	clean := detect.Clean(fmt.Sprintf("the thread goes on after %s from pinned memory", words.Count(pinned, "copy")))
	s.worst, s.class = s.ranks.Worst(copies.Device), copies.Device
	if s.worst != nil && s.worst.Cost(copies.Device).Share() >= copies.Matters {
		return detect.Clean("no copy's stream is waited for; the program waits for the whole device itself").Noting(s.device())
	}
	return clean
}

func (s *seen) found() detect.Verdict {
	amount := "waiting for copies from pinned memory takes " + s.worst.Waits(copies.Waited) + s.ranks.On(s.worst)
	switch role := s.Loaders.Role(); {
	case s.worst.Cost(copies.Waited).Share() < copies.Matters:
		f := s.finding(finding.Note)
		f.Title += ": not worth changing"
		return detect.Clean("no more than a note: " + amount).Noting(f)
	case role == timeline.Eval:
		return detect.Clean("no more than a note: an evaluation: " + amount).Noting(s.finding(finding.Note))
	case role != timeline.Train:
		return detect.Found(amount, s.finding(finding.Likely))
	}
	return detect.Found(amount, s.finding(finding.Proven))
}

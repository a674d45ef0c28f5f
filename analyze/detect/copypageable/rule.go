// Package copypageable is the rule copy-pageable: batches are copied to the device
// out of memory that is not pinned. docs/rules/copy-pageable.md explains it.
package copypageable

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/copies"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "copy-pageable",
	Title:   "Batches are copied to the device out of memory that is not pinned",
	Sources: []collect.Any{copies.Source},
	Excuses: []detect.Excuse{{
		Text:     "what is copied is not the batch, but weights, states of the optimizer or activations that stay in the host's memory.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*seen).worst.Sure(copies.Staged) },
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
	worst *copies.Rank // that is blocked for the largest share of its steps; nil: none is
}

func judge(c *detect.Case) detect.Verdict {
	s := &seen{Case: c, ranks: detect.Of(c, copies.Source).At(c.Loaders)}
	s.worst = s.ranks.Worst(copies.Staged)
	if s.worst != nil {
		return s.found()
	}
	all := s.ranks.Count(copies.Async, copies.Waited, copies.Device)
	switch unknown, unjudged := s.ranks.Unknown(), s.ranks.Unjudged(copies.Unjudged, copies.Quick, copies.Reaching); {
	case s.ranks.Bare():
		return detect.NotApplicable("nothing is copied to a device")
	case unknown != "":
		return detect.CannotTell(unknown)
	case s.ranks.Quiet():
		return detect.NotApplicable("nothing of more than 64 KiB is copied to a device between its batches")
	case unjudged != "":
		return detect.CannotTell(unjudged)
	case s.ranks.Count(copies.Staged) > 0 || all < copies.Enough:
		return detect.CannotTell(fmt.Sprintf("too few copies to judge: %d from memory that is not pinned, %d from memory that is",
			s.ranks.Count(copies.Staged), all))
	}
	if why := s.ranks.Partial(); why != "" {
		return detect.CannotTell(why)
	}
	return detect.Clean(words.Count(all, "copy") + " of its batches are from pinned memory")
}

func (s *seen) found() detect.Verdict {
	amount := "copies from memory that is not pinned block " + s.worst.Waits(copies.Staged) + s.ranks.On(s.worst)
	switch role := s.Loaders.Role(); {
	case s.worst.Cost(copies.Staged).Share() < copies.Matters:
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

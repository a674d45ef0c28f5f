// Package copyunpinnedbycast is the rule copy-unpinned-by-cast: the loader pins its
// batches, and what is copied to the device is made of them on the CPU, in memory
// that is not pinned. docs/rules/copy-unpinned-by-cast.md explains it.
package copyunpinnedbycast

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/copies"
	"github.com/dptrace/dptrace/analyze/evidence/pinning"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "copy-unpinned-by-cast",
	Title:   "Pinned batches are cast or sliced on the CPU, and copied from memory that is not pinned",
	Sources: []collect.Any{copies.Source, pinning.Source},
	Explains: []detect.Explained{{
		Rule: "copy-pageable",
		Why:  "the batches are pinned, and something else is made of them",
	}},
	Excuses: []detect.Excuse{{
		Text:     "what is copied is not made of the pinned tensors: the program has computed it, or it lies in the host's memory for good.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*seen).cast() },
	}, {
		Text:     copies.Excuse,
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*seen).worst.Driver() },
	}},
	Judge: judge,
}

// seen is the copies of one loader's batches, and how they were pinned.
type seen struct {
	*detect.Case
	ranks copies.Ranks
	looks []pinning.Look
	worst *copies.Rank
}

func judge(c *detect.Case) detect.Verdict {
	s := &seen{Case: c, ranks: detect.Of(c, copies.Source).At(c.Loaders), looks: detect.Of(c, pinning.Source).At(c.Loaders)}
	if s.ranks.Bare() {
		return detect.NotApplicable("nothing is copied to a device")
	}
	if v, ok := s.pinned(); !ok {
		return v
	}
	if s.worst = s.ranks.Worst(copies.Staged); s.worst != nil {
		return s.found()
	}
	all := s.ranks.Count(copies.Async, copies.Waited, copies.Device)
	switch unknown, unjudged := s.ranks.Unknown(), s.ranks.Unjudged(copies.Unjudged, copies.Quick, copies.Reaching); {
	case unknown != "":
		return detect.CannotTell(unknown)
	case s.ranks.Quiet():
		return detect.NotApplicable("nothing of more than 64 KiB is copied to a device between its batches")
	case unjudged != "":
		return detect.CannotTell(unjudged)
	case s.ranks.Count(copies.Staged) > 0 || all < copies.Enough:
		return detect.CannotTell("too few copies to judge")
	}
	if why := s.ranks.Partial(); why != "" {
		return detect.CannotTell(why)
	}
	return detect.Clean("what was pinned is what is copied")
}

// pinned reports whether the loader's batches were pinned; if not, why the rule is not about them.
func (s *seen) pinned() (detect.Verdict, bool) {
	switch {
	case !slices.ContainsFunc(s.Loaders, func(l *timeline.Loader) bool { return l.First().PinMemory }):
		return detect.NotApplicable("pin_memory=True was not given"), false
	case len(s.looks) == 0:
		return detect.CannotTell("no batch was looked at as it was pinned"), false
	case !slices.ContainsFunc(s.looks, func(l pinning.Look) bool { return l.Reached > 0 }):
		return detect.NotApplicable("the pin step pinned no tensor: pin-memory-noop is about that"), false
	case slices.ContainsFunc(s.looks, left):
		return detect.CannotTell("part of a batch was not pinned, and is not told from what was: pin-memory-noop is about that"), false
	}
	return detect.Verdict{}, true
}

// left: there were tensors or arrays in a batch that the step has not pinned, and that are worth it.
func left(l pinning.Look) bool {
	const significant = 64 << 10
	return l.LargestBytes > significant && (l.Left > l.Pinned || l.Arrays > 0)
}

func (s *seen) found() detect.Verdict {
	amount := "copies of what was made of pinned batches block " + s.worst.Waits(copies.Staged) + s.ranks.On(s.worst)
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

// slots of the copies that are from memory which is not pinned.
func (s *seen) slots() (staged []copies.Slot) {
	for _, x := range s.worst.Slots {
		if x.Of[copies.Staged] >= copies.Enough {
			staged = append(staged, x)
		}
	}
	return staged
}

// cast: the bytes tell that each of these copies is made of tensors of the batch, which are not copied as they are
// besides: with another dtype, or each second element.
func (s *seen) cast() bool {
	staged := s.slots()
	if s.made() {
		return true
	}
	return len(staged) > 0 && !slices.ContainsFunc(staged, func(x copies.Slot) bool { return !x.Match.Cast() })
}

// made: the hook has seen that each of these copies is asked for of a pinned tensor, which torch casts or makes contiguous first.
func (s *seen) made() bool {
	staged := s.slots()
	return len(staged) > 0 && !slices.ContainsFunc(staged, func(x copies.Slot) bool { return x.Made < x.Of[copies.Staged] })
}

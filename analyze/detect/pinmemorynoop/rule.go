// Package pinmemorynoop is the rule pin-memory-noop: pin_memory=True, and torch
// hands on batches of the program's own class as they are.
// docs/rules/pin-memory-noop.md explains it.
package pinmemorynoop

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/copies"
	"github.com/dptrace/dptrace/analyze/evidence/pinning"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "pin-memory-noop",
	DP:      "DP5",
	Title:   "pin_memory=True pins nothing of these batches",
	Sources: []collect.Any{pinning.Source, copies.Source},
	Explains: []detect.Explained{{
		Rule: "copy-pageable",
		Why:  "pin_memory=True is there, and pins nothing of what is copied",
	}},
	Excuses: []detect.Excuse{
		{
			Text:     "the program pins these tensors itself after next(): a function of its own calls pin_memory().",
			Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*seen).pins() == "" },
		},
		{
			Text:     "what the step leaves as it is never goes to the device, and only the rest of the batch does.",
			Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*seen).whole() },
		},
		{
			Text:     "the batch is pinned in a way that dptrace does not see.",
			Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*seen).unsure() == "" },
		},
	},
	Judge: judge,
}

// significant is the size from which on a copy out of memory that is not pinned
// blocks: smaller ones go through a buffer of the driver's ("API synchronization
// behavior" of the CUDA driver's reference).
const significant = 64 << 10

// minorShare of a batch that is not pinned is worth a note only.
const minorShare = 10

func judge(c *detect.Case) detect.Verdict {
	s := &seen{Case: c, all: detect.Of(c, pinning.Source).At(c.Loaders)}
	for _, l := range s.all {
		if bad(&l) {
			s.left = append(s.left, l)
		}
	}
	switch {
	case len(s.left) > 0 && s.minor():
		return detect.Clean("no more than a note: the pin step got to nearly all of these batches").Noting(s.finding(finding.Note))
	case len(s.left) > 0:
		return detect.Found(s.title(), s.finding(finding.Proven))
	case !slices.ContainsFunc(c.Loaders, pins):
		return detect.NotApplicable("nothing is pinned: pin_memory=True was not given, or there is no accelerator")
	case len(s.all) == 0:
		return detect.CannotTell("no batch was looked at")
	case slices.ContainsFunc(s.all, hidden):
		return detect.CannotTell("batches of class " + s.all[0].Class + " have their own way to what they hold")
	case slices.ContainsFunc(s.all, func(l pinning.Look) bool { return l.Left > 0 || l.Arrays > 0 }):
		return detect.Clean("what the pin step left as it was is small, or pinned all the same: " + words.Count(len(s.all), "batch"))
	}
	return detect.Clean("the pin step got to all tensors of " + words.Count(len(s.all), "batch"))
}

func pins(l *timeline.Loader) bool {
	return slices.ContainsFunc(l.Objects, func(o traces.Loader) bool { return o.PinMemory })
}

// bad: what was left as it is is worth pinning, and is not.
func bad(l *pinning.Look) bool {
	if l.Left > 0 {
		return l.Pinned == 0 && l.LargestBytes > significant
	}
	return l.Arrays > 0 && l.Reached == 0 && l.LargestBytes > significant
}

// hidden: nothing was found in a batch into which the step may have seen.
func hidden(l pinning.Look) bool {
	return l.Unsure != "" && l.Reached == 0 && l.Left == 0 && l.Arrays == 0
}

// seen is the looks at the batches of one loader.
type seen struct {
	*detect.Case
	all, left []pinning.Look // left: those of which something was left as it is
}

// whole: the step got to no tensor of these batches.
func (s *seen) whole() bool {
	return !slices.ContainsFunc(s.left, func(l pinning.Look) bool { return l.Reached > 0 })
}

// minor: what was left is a small part of what was pinned, as a label beside an image.
func (s *seen) minor() bool {
	return !slices.ContainsFunc(s.left, func(l pinning.Look) bool {
		return l.Reached == 0 || l.LeftBytes > l.ReachedBytes/minorShare
	})
}

func (s *seen) unsure() string { return s.first(func(l *pinning.Look) string { return l.Unsure }) }

func (s *seen) pins() string { return s.first(func(l *pinning.Look) string { return l.Pins }) }

func (s *seen) first(of func(*pinning.Look) string) string {
	for i := range s.left {
		if text := of(&s.left[i]); text != "" {
			return text
		}
	}
	return ""
}

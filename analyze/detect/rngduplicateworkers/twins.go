package rngduplicateworkers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
	"github.com/dptrace/dptrace/analyze/words"
)

// twins notes two generators that give one worker the same numbers: wanted
// where image and mask must be cut alike, else two augmentations that are tied
// to each other. The first worker of a pass is looked at.
func twins(c *detect.Case, s *draws.Streams) []finding.Finding {
	for _, pass := range c.Passes() {
		var first []*draws.Draws
		for _, d := range s.OfPass(pass) {
			if d.Worker == s.OfPass(pass)[0].Worker && d.Data() {
				first = append(first, d)
			}
		}
		if pairs := redraw.Pairs(first, between); len(pairs) > 0 {
			return []finding.Finding{twin(slices.MinFunc(pairs, func(a, b *redraw.Pair) int {
				return cmp.Compare(a.First.Slot.Path, b.First.Slot.Path)
			}))}
		}
	}
	return nil
}

func twin(p *redraw.Pair) finding.Finding {
	both := []string{p.First.Slot.Name(), p.Second.Slot.Name()}
	slices.Sort(both)
	same := redraw.Outputs(p.First.Slot, p.Words)
	text := fmt.Sprintf("In %s, %s outputs are the same.", redraw.Who(p.First, p.Second), same)
	return finding.Finding{
		Certainty: finding.Note,
		Title:     words.List(both) + " give each worker the same random numbers",
		Loader:    finding.Loader{At: p.First.Worker.Pass.Loader.At()},
		Evidence:  []finding.Evidence{{Text: text, Refs: redraw.Refs(p)}},
		Cost:      same + " numbers were drawn from both",
		Fix:       "Seed them differently, if they are not meant to agree.",
		Verify:    "Record again: the note is gone.",
		NotABugIf: "they must agree, as for an image and its mask.",
	}
}

func between(a, b *draws.Draws) finding.Certainty {
	if a.Slot == b.Slot || a.Slot.Key() == b.Slot.Key() {
		return 0
	}
	return finding.Note
}

package workers

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
)

// twins notes two generators that give one worker the same numbers: wanted
// where image and mask must be cut alike, else two augmentations that are tied
// to each other.
func twins(s *draws.Streams, g *redraw.Group) (findings []finding.Finding) {
	for _, l := range g.Loaders {
		for _, drawn := range redraw.ByPass(g.Draws[l]) {
			var cover draws.IntervalSet
			var hits redraw.Hits
			for _, d := range drawn {
				if d.Worker == drawn[0].Worker && d.Data() {
					hits.Add(cover.Add(d), between)
				}
			}
			list := hits.List(nil)
			if len(list) == 0 {
				continue
			}
			p := list[0].Pairs[0]
			both := []string{p.First.Slot.Name(), p.Second.Slot.Name()}
			slices.Sort(both)
			return append(findings, finding.Finding{
				Rule: id, DP: "DP1", Certainty: finding.Note,
				Title:     fmt.Sprintf("%s give each worker the same random numbers", words.List(both)),
				Loader:    finding.Loader{ID: g.ID, At: l.At(), Role: string(g.Loaders.Role())},
				Evidence:  []finding.Evidence{{Text: fmt.Sprintf("In %s, %s outputs are the same.", redraw.Who(p.First, p.Second), redraw.Outputs(list[0], p.Words)), Refs: redraw.Refs(p)}},
				Cost:      redraw.Outputs(list[0], p.Words) + " numbers were drawn from both",
				Fix:       "Seed them differently, if they are not meant to agree.",
				Verify:    "Record again: the note is gone.",
				NotABugIf: "they must agree, as for an image and its mask.",
				Proof:     "hook",
			})
		}
	}
	return nil
}

func between(a, b *draws.Draws) finding.Certainty {
	if a.Slot == b.Slot || redraw.KeyOf(a) == redraw.KeyOf(b) {
		return 0
	}
	return finding.Note
}

package ranksdisagree

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

func (v *verdict) finding() (f finding.Finding) {
	c := &v.causes[0]
	f.Certainty, f.Facts = finding.Proven, c.doubts
	if c.note {
		f.Certainty = finding.Note
	}
	f.Title, f.Cost, f.Fix = c.title, c.cost, fmt.Sprintf("# %s\n%s", v.ranks[0].At(), c.fix)
	for _, one := range v.causes {
		f.Evidence = append(f.Evidence, one.evidence...)
	}
	reduced := "It was not seen that the gradients of these ranks are reduced together."
	if v.relation == timeline.DataParallel {
		reduced = "The gradients of these ranks are reduced together (DDP or FSDP)."
	}
	f.Evidence = append(f.Evidence, finding.Evidence{Text: reduced})
	return f
}

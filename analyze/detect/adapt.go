package detect

import (
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Adapt makes a Judge of a rule's of before the frame, until all are changed.
func Adapt(old func(*collect.Evidence, *timeline.Timeline) ([]finding.Finding, []finding.Check)) func(*Case) Verdict {
	return func(c *Case) Verdict {
		findings, checks := old(c.evidence, c.Timeline)
		v := CannotTell("nothing was said")
		for _, k := range checks {
			if k.Loader == c.ID() {
				v = Verdict{status: k.Status, reason: k.Reason}
			}
		}
		for _, f := range findings {
			if f.Loader.ID == c.ID() {
				v.findings = append(v.findings, f)
			}
		}
		return v
	}
}

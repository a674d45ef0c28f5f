package detect

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/finding"
)

// explain makes one finding of those that tell of one bug: what a rule explains
// becomes the last line of its evidence.
func explain(rules []Rule, findings []finding.Finding, checks []finding.Check) ([]finding.Finding, []finding.Check) {
	for i := range rules {
		rule := &rules[i]
		for _, x := range rule.Explains {
			of := map[int]int{} // by loader: the place of the finding that explains
			for i, f := range findings {
				if f.Rule == rule.ID && f.Certainty > finding.Note && (x.If == nil || x.If(&findings[i])) {
					of[f.Loader.ID] = i
				}
			}
			for _, f := range findings {
				if to, ok := of[f.Loader.ID]; ok && f.Rule == x.Rule && len(f.Evidence) > 0 {
					findings[to].Evidence = append(findings[to].Evidence, f.Evidence[0])
				}
			}
			findings = slices.DeleteFunc(findings, func(f finding.Finding) bool {
				_, ok := of[f.Loader.ID]
				return ok && f.Rule == x.Rule
			})
			for i := range checks {
				if _, ok := of[checks[i].Loader]; ok && checks[i].Rule == x.Rule {
					checks[i].Status, checks[i].Reason = finding.CannotTell, fmt.Sprintf("%s: %s", x.Why, rule.ID)
				}
			}
		}
	}
	return findings, checks
}

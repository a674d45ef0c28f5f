package analyze

import (
	"slices"

	ranks "github.com/dptrace/dptrace/analyze/detect/rng-duplicate-ranks"
	sharedranks "github.com/dptrace/dptrace/analyze/detect/shard-duplicate-ranks"
	"github.com/dptrace/dptrace/analyze/finding"
)

// fold makes one finding of two that tell of one bug: ranks that are given the
// same samples draw the same numbers for them, which is then evidence of that.
func (r *Result) fold() {
	shared := map[int]int{} // by loader: place in r.Findings
	for i, f := range r.Findings {
		if f.Rule == sharedranks.Rule.ID && f.Certainty > finding.Note {
			shared[f.Loader.ID] = i
		}
	}
	folded := func(rule string, loader int) bool {
		_, ok := shared[loader]
		return ok && rule == ranks.Rule.ID
	}
	for _, f := range r.Findings {
		if folded(f.Rule, f.Loader.ID) && len(f.Evidence) > 0 {
			to := &r.Findings[shared[f.Loader.ID]]
			to.Evidence = append(to.Evidence, f.Evidence[0])
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f finding.Finding) bool { return folded(f.Rule, f.Loader.ID) })
	for i := range r.Checks {
		if c := &r.Checks[i]; folded(c.Rule, c.Loader) {
			c.Status, c.Reason = finding.CannotTell, "the ranks are given the same samples: "+sharedranks.Rule.ID
		}
	}
}

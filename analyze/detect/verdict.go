package detect

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/finding"
)

// Verdict is what a rule says about one case. It is made by Found, Clean,
// CannotTell and NotApplicable.
type Verdict struct {
	status   finding.Status
	reason   string
	findings []finding.Finding
}

// Found is one or several bugs, or notes. Of a finding the rule gives what is
// its own: certainty, title, evidence, cost, fix, and where they are not the
// usual ones NotABugIf, Proof, Verify and Loader.At. reason says in a few words
// how much was found.
func Found(reason string, findings ...finding.Finding) Verdict {
	return Verdict{finding.Found, reason, findings}
}

// Clean is that what the rule is about was seen, compared and right; reason says
// how much was.
func Clean(reason string) Verdict { return Verdict{status: finding.Clean, reason: reason} }

// CannotTell is that it could not be seen or not be compared; reason says why.
func CannotTell(reason string) Verdict { return Verdict{status: finding.CannotTell, reason: reason} }

// NotApplicable is that the rule is not about such a loader, or such a run.
func NotApplicable(reason string) Verdict {
	return Verdict{status: finding.NotApplicable, reason: reason}
}

// Noting adds findings to whatever was said, notes for the most part.
func (v Verdict) Noting(notes ...finding.Finding) Verdict {
	v.findings = append(slices.Clip(v.findings), notes...)
	return v
}

// best is the surest of its findings; 0: there is none.
func (v Verdict) best() (best finding.Certainty) {
	for i := range v.findings {
		best = max(best, v.findings[i].Certainty)
	}
	return best
}

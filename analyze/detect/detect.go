// Package detect says what a rule is, and keeps the promises that all rules make:
// a gap in the evidence is never clean, and nothing is proven while an excuse for
// it is open. Each rule is one folder beside this file and one line in
// analyze.Rules.
package detect

import (
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
)

// Rule is one kind of silent data-pipeline bug.
type Rule struct {
	ID    string // its name everywhere: report, `dptrace explain ID`, docs/rules/ID.md; without its dashes its folder
	DP    string // alias: number of the failure mode in the catalogue
	Title string // one line, no full stop

	// Sources is the evidence that Judge looks at. A gap in it is a gap of the rule.
	Sources []collect.Any
	// Run says that the rule is about a whole run, not about a loader of it: Judge
	// is called once, and what it says is of loader 0.
	Run bool
	// Beside is asked once about what belongs to no loader of the run, as processes
	// that are no workers; that there is no such thing is not told. What it finds is
	// likely at most: the excuses are those of loaders.
	Beside func(*Case) Verdict
	// Explains is rules whose findings at the same loader tell of the same bug:
	// they become a line of evidence of this one's.
	Explains []Explained
	// Excuses are the realistic programs in which the fact is right and no bug.
	Excuses []Excuse

	// Judge says what came of one case. A rule looks at everything it can: the
	// frame says what its answer is worth.
	Judge func(*Case) Verdict
}

// Explained is another rule, and how that what it finds follows from this one's
// finding.
type Explained struct {
	Rule string
	Why  string // said where the other rule would have spoken
	// If reports whether a finding explains the other rule's; nil: each that is more
	// than a note does.
	If func(*finding.Finding) bool
}

// Excuse is one kind of program in which the fact is right and no bug.
type Excuse struct {
	Text string // completes "no bug if"; ends with a full stop
	// Excluded reports whether something was observed that rules it out for a
	// finding. While it is not, the finding is no more than likely.
	Excluded func(*Case, *finding.Finding) bool
}

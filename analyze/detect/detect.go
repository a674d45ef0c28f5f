// Package detect says what a rule is. Each rule is one folder beside this file
// and one line in analyze.Rules.
package detect

import (
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Rule is one kind of silent data-pipeline bug.
type Rule struct {
	ID    string // its name everywhere: folder, report, `dptrace explain ID`, docs/rules/ID.md
	DP    string // alias: number of the failure mode in the catalogue
	Title string // one line, no full stop
	Facts *Facts // what it looks at
	// Judge says what was found, and for each loader whether it could be judged.
	// It gets the accumulator that Facts made, with all rows added.
	Judge func(Accumulator, *timeline.Timeline) ([]finding.Finding, []finding.Check)
}

// Facts is what one or several rules need to know. Rules that name the same
// Facts share one accumulator: the rows are collected, and what follows from
// them is computed, once.
type Facts struct {
	Name  string
	Needs []string // tables, in the order in which Add gets their rows
	New   func() Accumulator
	Of    []*Facts // that these are joined of: see Join
}

// Accumulator collects rows. The rows of one part of a trace go to one
// accumulator, in their order; accumulators of different parts may be merged
// in any order and grouping, which changes nothing.
type Accumulator interface {
	Add(traces.Batch)
	Merge(Accumulator) // the other one is of the same Facts, and is not used afterwards
}

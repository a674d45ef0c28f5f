// Package analyze judges a trace: it makes the timeline, lets the rules look at
// it, and counts what was lost. It knows nothing of how traces are made.
package analyze

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/accept"
	"github.com/dptrace/dptrace/analyze/account"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	copied "github.com/dptrace/dptrace/analyze/detect/dataset-copied-per-worker"
	idle "github.com/dptrace/dptrace/analyze/detect/idle-workers"
	one "github.com/dptrace/dptrace/analyze/detect/last-batch-size-1"
	cow "github.com/dptrace/dptrace/analyze/detect/memory-growth-cow"
	notshuffled "github.com/dptrace/dptrace/analyze/detect/not-shuffled"
	repeats "github.com/dptrace/dptrace/analyze/detect/order-repeats"
	disagree "github.com/dptrace/dptrace/analyze/detect/ranks-disagree"
	epochs "github.com/dptrace/dptrace/analyze/detect/rng-duplicate-epochs"
	ranks "github.com/dptrace/dptrace/analyze/detect/rng-duplicate-ranks"
	workers "github.com/dptrace/dptrace/analyze/detect/rng-duplicate-workers"
	noepoch "github.com/dptrace/dptrace/analyze/detect/sampler-no-set-epoch"
	dropped "github.com/dptrace/dptrace/analyze/detect/samples-dropped"
	sharedranks "github.com/dptrace/dptrace/analyze/detect/shard-duplicate-ranks"
	sharedworkers "github.com/dptrace/dptrace/analyze/detect/shard-duplicate-workers"
	leak "github.com/dptrace/dptrace/analyze/detect/split-leak"
	stale "github.com/dptrace/dptrace/analyze/detect/stale-worker-state"
	crash "github.com/dptrace/dptrace/analyze/detect/swallowed-crash"
	uneven "github.com/dptrace/dptrace/analyze/detect/uneven-shards"
	killed "github.com/dptrace/dptrace/analyze/detect/worker-killed"
	wronglen "github.com/dptrace/dptrace/analyze/detect/wrong-len"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Rules is all rules, in the order of the report. A rule is a folder of
// detect/ and a line here.
var Rules = []detect.Rule{
	workers.Rule,
	epochs.Rule,
	ranks.Rule,
	sharedworkers.Rule,
	sharedranks.Rule,
	noepoch.Rule,
	repeats.Rule,
	notshuffled.Rule,
	uneven.Rule,
	leak.Rule,
	wronglen.Rule,
	one.Rule,
	disagree.Rule,
	stale.Rule,
	idle.Rule,
	dropped.Rule,
	cow.Rule,
	copied.Rule,
	killed.Rule,
	crash.Rule,
}

// Result is what was found out about a run: all that a report prints and an
// exporter writes.
type Result struct {
	*account.Account

	Run      *traces.Run
	Timeline *timeline.Timeline
	Evidence *collect.Evidence // of the sources of the rules, and of those that were asked for
	Findings []finding.Finding // the surest first
	Checks   []finding.Check   // by rule and loader

	Unused []accept.Entry // of dptrace.toml: they accept nothing that was found
}

// Run reads a trace once and lets the rules judge it. Of further sources, those
// of exporters, the evidence is in the result. What is damaged is left out and
// noted in run.Problems; an error means that reading could not go on, or that
// nothing can be told at all.
func Run(run *traces.Run, rules []detect.Rule, further ...collect.Any) (*Result, error) {
	evidence, err := collect.Read(run, append(Sources(rules), further...)...)
	if err != nil {
		return nil, fmt.Errorf("analyze: %w", err)
	}
	return Judge(evidence, rules)
}

// Judge lets rules judge the evidence of their sources.
func Judge(evidence *collect.Evidence, rules []detect.Rule) (*Result, error) {
	r := &Result{Run: evidence.Run, Evidence: evidence}
	evidence.Make()
	if failed := collect.Guard("the report", func() {
		r.Timeline, r.Account = collect.Of(evidence, timeline.Source), collect.Of(evidence, account.Source)
		r.Findings, r.Checks = detect.Judge(rules, r.Timeline, evidence)
	}); failed != nil {
		return nil, fmt.Errorf("analyze: %w", failed)
	}
	slices.SortStableFunc(r.Findings, func(a, b finding.Finding) int { return int(b.Certainty - a.Certainty) })
	return r, nil
}

// Sources of some rules and of every result.
func Sources(rules []detect.Rule) []collect.Any {
	sources := []collect.Any{account.Source}
	for _, r := range rules {
		sources = append(sources, r.Sources...)
	}
	return sources
}

// Package analyze judges a trace: it makes the timeline, lets the rules look at
// it, and counts what was lost. It knows nothing of how traces are made.
package analyze

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/accept"
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

// Result is all that a report prints.
type Result struct {
	Run      *traces.Run
	Timeline *timeline.Timeline
	Findings []finding.Finding // the surest first
	Checks   []finding.Check   // by rule and loader
	Lost     []Loss
	Overhead Overhead
	Tier     Tier

	Processes Processes

	Unused []accept.Entry // of dptrace.toml: they accept nothing that was found
}

// Run reads a trace once and judges it. What is damaged is left out and noted
// in run.Problems; an error means that reading could not go on.
func Run(run *traces.Run) (*Result, error) {
	builder, ledger := timeline.NewBuilder(), newLedger()
	facts := map[*detect.Facts]detect.Accumulator{}
	tables := append(slices.Clone(timeline.Needs), ledgerNeeds...)
	for _, r := range Rules {
		for _, f := range kinds(r.Facts) {
			if facts[f] == nil {
				facts[f] = f.New()
				tables = append(tables, f.Needs...)
			}
		}
	}
	err := run.Each(distinct(tables), func(b traces.Batch) error {
		if slices.Contains(timeline.Needs, b.Table) {
			builder.Add(b)
		}
		ledger.add(b)
		for f, a := range facts {
			if slices.Contains(f.Needs, b.Table) {
				a.Add(b)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("analyze: %w", err)
	}
	r := &Result{Run: run, Timeline: builder.Build(run.Problems), Lost: ledger.lost(run.Problems), Overhead: ledger.overhead(), Tier: ledger.tier()}
	r.Processes = ledger.processes(r.Timeline)
	for _, rule := range Rules {
		findings, checks := rule.Judge(of(facts, rule.Facts), r.Timeline)
		r.Findings = append(r.Findings, findings...)
		r.Checks = append(r.Checks, checks...)
	}
	r.fold()
	slices.SortStableFunc(r.Findings, func(a, b finding.Finding) int { return int(b.Certainty - a.Certainty) })
	return r, nil
}

// kinds are the facts that are collected for a rule.
func kinds(f *detect.Facts) []*detect.Facts {
	if f.Of != nil {
		return f.Of
	}
	return []*detect.Facts{f}
}

// of is what was collected for a rule.
func of(facts map[*detect.Facts]detect.Accumulator, f *detect.Facts) detect.Accumulator {
	if f.Of == nil {
		return facts[f]
	}
	var joined detect.Joined
	for _, kind := range f.Of {
		joined = append(joined, facts[kind])
	}
	return joined
}

// distinct keeps the first of equal names.
func distinct(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

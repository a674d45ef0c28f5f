// Package disagree is the rule ranks-disagree: data-parallel ranks deal out one
// dataset by index, and have different lists or permutations of it.
// docs/rules/ranks-disagree.md explains it.
package disagree

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/deliveries"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	Title:   "Ranks have different lists or permutations of one dataset",
	Sources: []collect.Any{values.Source, samples.Source},
	Judge:   detect.Adapt(judge),
}

const id = "ranks-disagree"

var tables = []string{"process", "loader", "pass", "batch_put", "batch_next", "dist", "dataset", "attribute", "digest"}

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	ledger := collect.Of(e, samples.Source)
	for _, g := range deliveries.Groups(t) {
		v := &verdict{Timeline: t, group: g, c: collect.Of(e, values.Source), ledger: ledger}
		v.look()
		if len(v.causes) > 0 {
			findings = append(findings, v.finding())
		}
		checks = append(checks, v.check())
	}
	return findings, checks
}

// cause is one way in which ranks disagree.
type cause struct {
	title, cost, fix string
	evidence         []finding.Evidence
	sure             finding.Certainty
}

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	group  *deliveries.Group
	c      *values.Contents
	ledger *samples.Attribution

	ranks    []*timeline.Loader // that one distributed sampler deals out to
	exact    bool               // it is torch's own
	relation timeline.Relation  // between all of them
	causes   []cause            // the surest first
	why      string             // they are not compared
	covered  int                // passes whose shares fit together
	listed   bool               // a list of the samples is the same on all ranks
	alike    int                // samples that two ranks had at one index, alike
	another  bool               // they had others at one index
	apart    bool               // they take other samples of one dataset
}

func (v *verdict) look() {
	if v.why = v.choose(); v.why != "" {
		return
	}
	v.lengths()
	moved := v.members()
	if len(moved) == 0 {
		moved = v.samples()
	}
	v.lists()
	v.shares()
	v.causes = append(v.causes, moved...) // the others say why
	slices.SortStableFunc(v.causes, func(a, b cause) int { return int(b.sure - a.sure) })
}

// choose the ranks that are compared: all that a sampler deals out to. Ranks
// that have data of their own have no distributed sampler, or one each.
func (v *verdict) choose() (why string) {
	v.exact, v.relation = true, timeline.DataParallel
	for _, l := range v.group.Loaders {
		o := l.First()
		deals, exact := values.Deals(o)
		switch {
		case l.Rank() < 0:
			continue
		case !deals:
			return "no distributed sampler: each rank may have data of its own"
		case !values.Recorded(o):
			return "what the ranks hold is not in the trace"
		case slices.ContainsFunc(v.ranks, func(r *timeline.Loader) bool { return !timeline.Together(r.Process, l.Process) }):
			return "the ranks did not run at the same time"
		case slices.ContainsFunc(v.ranks, func(r *timeline.Loader) bool { return r.First().SamplerRank == o.SamplerRank }):
			return fmt.Sprintf("two samplers have the number %d: ranks of one replica, or shard-duplicate-ranks", o.SamplerRank)
		}
		v.exact = v.exact && exact
		v.ranks = append(v.ranks, l)
	}
	if len(v.ranks) < 2 {
		return "one rank"
	}
	if n := v.ranks[0].First().SamplerReplicas; n != int64(len(v.ranks)) || slices.ContainsFunc(v.ranks, func(l *timeline.Loader) bool { return l.First().SamplerReplicas != n }) {
		return fmt.Sprintf("a sampler for %d ranks, and %d of them are in the trace", n, len(v.ranks))
	}
	for _, l := range v.ranks[1:] {
		switch r := v.Relation(v.ranks[0].Process, l.Process); r {
		case timeline.Apart:
			return "no two ranks whose gradients are reduced together"
		case timeline.Undecided:
			return "the program made groups of its own: which ranks see the same samples on purpose is not known"
		case timeline.NoGroups:
			v.relation = r
		}
	}
	return ""
}

// sure is how sure a cause is at most.
func (v *verdict) sure() finding.Certainty {
	switch {
	case v.group.Loaders.Role() == timeline.Eval:
		return finding.Note
	case v.relation != timeline.DataParallel || !v.exact:
		return finding.Likely
	}
	return finding.Proven
}

// refs are the rows of the loaders.
func (v *verdict) refs() (refs []finding.Ref) {
	for _, l := range v.ranks[:min(len(v.ranks), shown)] {
		refs = append(refs, ref(l, "loader", l.First().Seq))
	}
	return refs
}

func ref(l *timeline.Loader, table string, seq uint64) finding.Ref {
	return finding.Ref{Part: l.Process.Part.Name, Table: table, Seq: seq}
}

// shown is how many rows or ranks a piece of evidence names at most.
const shown = 8

// differ reports whether a number of each rank's loader differs.
func (v *verdict) differ(number func(*traces.Loader) int64) bool {
	return slices.ContainsFunc(v.ranks, func(l *timeline.Loader) bool { return number(l.First()) != number(v.ranks[0].First()) })
}

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.group.ID, Status: finding.CannotTell}
	gap := v.group.Gap(v.Timeline, tables)
	switch {
	case len(v.causes) > 0 && v.causes[0].sure > finding.Note:
		c.Status, c.Reason = finding.Found, v.causes[0].title
	case gap != "":
		c.Reason = gap
	case v.why != "":
		c.Reason = v.why
	case len(v.causes) > 0 && v.sure() == finding.Note:
		c.Status, c.Reason = finding.Clean, "no more than a note: an evaluation"
	case len(v.causes) > 0:
		c.Reason = "no more than a note: " + v.causes[0].title
	case v.apart:
		c.Reason = "the ranks go through different lists of one dataset, with hardly a sample in common: each may have a part of its own"
	case v.covered == 0:
		c.Reason = "no pass came to its end on all ranks"
	case !v.listed && v.alike < enough:
		c.Reason = "the shares of the ranks fit together, but whether an index is the same sample on all of them is not known"
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%d ranks with the same samples in one order, each in one share, in %s", len(v.ranks), words.Count(v.covered, "pass"))
	}
	return c
}

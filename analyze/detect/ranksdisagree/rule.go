// Package ranksdisagree is the rule ranks-disagree: data-parallel ranks deal out one
// dataset by index, and have different lists or permutations of it.
// docs/rules/ranks-disagree.md explains it.
package ranksdisagree

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "ranks-disagree",
	Title:   "Ranks have different lists or permutations of one dataset",
	Sources: []collect.Any{values.Source, batches.Requested, samples.Source, proof},
	Excuses: excuses,
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	v := &verdict{Case: c, c: detect.Of(c, values.Source), requests: detect.Of(c, batches.Requested), ledger: detect.Of(c, samples.Source)}
	if not := v.choose(); not != nil {
		return *not
	}
	v.look()
	if len(v.causes) == 0 {
		return v.nothing()
	}
	first, f := &v.causes[0], v.finding()
	switch {
	case !first.note:
		return detect.Found(first.title, f)
	case v.evaluates():
		return detect.Found("no more than a note: an evaluation", f)
	}
	return detect.CannotTell("no more than a note: " + first.title).Noting(f)
}

// cause is one way in which ranks disagree.
type cause struct {
	title, cost, fix string
	evidence         []finding.Evidence
	note             bool
	doubts           []doubt
}

func (c *cause) add(d doubt) { c.doubts = append(c.doubts, d) }

// verdict on one loader.
type verdict struct {
	*detect.Case
	c        *values.Contents
	requests batches.ByPass[batches.Requests]
	ledger   *samples.Attribution

	ranks    []*timeline.Loader // that one distributed sampler deals out to
	exact    bool               // it is torch's own
	relation timeline.Relation  // between all of them
	causes   []cause            // the surest first
	covered  int                // passes whose shares fit together
	listed   bool               // a list of the samples is the same on all ranks
	alike    int                // samples that two ranks had at one index, alike
	another  bool               // they had others at one index
	apart    bool               // they take other samples of one dataset
	common   int                // samples that two ranks had, wherever
	moved    int                // of which the index is another one
}

func (v *verdict) look() {
	v.compare()
	v.lengths()
	moved := v.members()
	if len(moved) == 0 {
		moved = v.samples()
	}
	v.lists()
	v.shares()
	v.causes = append(v.causes, moved...) // the others say why
	slices.SortStableFunc(v.causes, func(a, b cause) int { return a.worth() - b.worth() })
}

// choose the ranks that are compared: all that a sampler deals out to. Ranks
// that have data of their own have no distributed sampler, or one each. It says
// why there are none.
func (v *verdict) choose() *detect.Verdict {
	v.exact = true
	var dealt []*timeline.Loader
	for _, l := range v.Loaders {
		if l.Rank() >= 0 {
			dealt = append(dealt, l)
		}
	}
	if len(dealt) < 2 {
		return not(detect.NotApplicable("one rank"))
	}
	for i, l := range dealt {
		o := l.First()
		deals, exact := samplers.Deals(o)
		switch {
		case o.Iterable:
			return not(detect.NotApplicable("an IterableDataset: no sampler deals it out by index"))
		case !deals && eachItsOwn(o):
			return not(detect.NotApplicable("no distributed sampler: each rank may have data of its own"))
		case !deals:
			return not(detect.CannotTell("no distributed sampler: each rank may have data of its own"))
		case !values.Recorded(o):
			return not(detect.CannotTell("what the ranks hold is not in the trace"))
		case slices.ContainsFunc(dealt[:i], func(r *timeline.Loader) bool { return !timeline.Together(r.Process, l.Process) }):
			return not(detect.CannotTell("the ranks did not run at the same time"))
		case slices.ContainsFunc(dealt[:i], func(r *timeline.Loader) bool { return r.First().SamplerRank == o.SamplerRank }):
			return not(detect.CannotTell(fmt.Sprintf("two samplers have the number %d: ranks of one replica, or shard-duplicate-ranks",
				o.SamplerRank)))
		}
		v.exact = v.exact && exact
	}
	v.ranks = dealt
	if n := dealt[0].First().SamplerReplicas; n != int64(len(dealt)) || v.differ(func(o *traces.Loader) int64 { return o.SamplerReplicas }) {
		return not(detect.CannotTell(fmt.Sprintf("a sampler for %d ranks, and %d of them are in the trace", n, len(dealt))))
	}
	return v.relate()
}

// relate the ranks: they have to be parts of one training.
func (v *verdict) relate() *detect.Verdict {
	v.relation = timeline.DataParallel
	for _, l := range v.ranks[1:] {
		switch r := v.Relation(v.ranks[0].Process, l.Process); r {
		case timeline.Apart:
			return not(detect.NotApplicable("no two ranks whose gradients are reduced together"))
		case timeline.Undecided:
			return not(detect.CannotTell("the program made groups of its own: which ranks see the same samples on purpose is not known"))
		case timeline.NoGroups:
			v.relation = r
		}
	}
	return nil
}

func not(v detect.Verdict) *detect.Verdict { return &v }

// eachItsOwn reports whether a sampler of torch's knows of no ranks, and nothing
// around it does.
func eachItsOwn(o *traces.Loader) bool {
	sharing := samplers.SharingOf(o)
	return samplers.PlainBatches(o) && (sharing == samplers.EachItsOwn || sharing == samplers.Replacing)
}

// cause is a new one, with what may excuse any.
func (v *verdict) cause() cause {
	c := cause{note: v.evaluates()}
	if v.relation != timeline.DataParallel {
		c.add(separate)
	}
	if !v.exact {
		c.add(ownSampler)
	}
	return c
}

func (v *verdict) evaluates() bool { return v.Loaders.Role() == timeline.Eval }

// worth orders causes: the surest first, notes last.
func (c *cause) worth() int {
	if c.note {
		return 1000
	}
	return len(c.doubts)
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

// nothing was found.
func (v *verdict) nothing() detect.Verdict {
	switch {
	case v.apart:
		return detect.CannotTell("the ranks go through different lists of one dataset, with hardly a sample in common: " +
			"each may have a part of its own")
	case v.covered == 0:
		return detect.CannotTell("no pass came to its end on all ranks")
	case !v.listed && v.alike < enough:
		return detect.CannotTell("whether an index is the same sample on all ranks is not known")
	}
	return detect.Clean(fmt.Sprintf("%d ranks with the same samples in one order, each in one share, in %s", len(v.ranks),
		words.Count(v.covered, "pass")))
}

// Package noepoch is the rule sampler-no-set-epoch: a sampler that shuffles by
// its epoch is never told a new one. docs/rules/sampler-no-set-epoch.md
// explains it.
package noepoch

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	DP:      "DP14",
	Title:   "A sampler is never told the epoch and replays one order",
	Sources: []collect.Any{orders.Source},
	Judge:   detect.Adapt(judge),
}

const id = "sampler-no-set-epoch"

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	for _, g := range collect.Of(e, orders.Source).Groups(t) {
		j := &judged{t: t, group: g}
		j.judge()
		if j.certainty != 0 {
			findings = append(findings, j.finding())
		}
		checks = append(checks, j.check())
	}
	return findings, checks
}

// judged is one loader.
type judged struct {
	t     *timeline.Timeline
	group *orders.Group

	certainty finding.Certainty
	rank      *orders.Rank // whose training is shown: the longest of the surest
	training  []*orders.Pass
	repeats   []orders.Repeat
	ranks     []int
}

func (j *judged) judge() {
	for _, r := range j.group.Ranks {
		if r.Loader.Iterable() {
			continue
		}
		for _, training := range r.Trainings {
			repeats := orders.Shuffled(orders.Repeats(training))
			if len(repeats) == 0 || !r.Frozen(training) {
				continue
			}
			c := certainty(repeats)
			j.ranks = append(j.ranks, r.Loader.Rank())
			if c > j.certainty || c == j.certainty && len(repeats) > len(j.repeats) {
				j.certainty, j.rank, j.training, j.repeats = c, r, training, repeats
			}
		}
	}
}

// certainty of the surest pair: torch's own sampler, and one dataset object.
// Loaders made anew for each pass may be over other data each time.
func certainty(repeats []orders.Repeat) finding.Certainty {
	for _, r := range repeats {
		if r.All && r.SameData() && r.First.Contract == orders.Shuffles && r.First.Role == timeline.Train && r.Again.Role == timeline.Train {
			return finding.Proven
		}
	}
	return finding.Likely
}

func (j *judged) check() finding.Check {
	c := finding.Check{Rule: id, Loader: j.group.ID, Status: finding.CannotTell}
	gap := j.group.Gap(j.t)
	reason, n := j.group.Nothing()
	switch {
	case j.certainty != 0:
		c.Status = finding.Found
		c.Reason = fmt.Sprintf("%d of %d passes in the order of an earlier one, at epoch %d", len(j.repeats), len(j.training), j.training[0].Epoch)
	case gap != "":
		c.Reason = gap
	case j.group.Iterable():
		c.Status, c.Reason = finding.Clean, "an IterableDataset has no sampler"
	case j.group.Everywhere(func(r *orders.Rank) bool { return r.Eval }):
		c.Status, c.Reason = finding.Clean, "used for evaluation only"
	case j.group.Everywhere(func(r *orders.Rank) bool { return r.Loader.First().SamplerEpoch < 0 }):
		c.Status, c.Reason = finding.Clean, "its sampler has no epoch"
	case reason != "":
		c.Reason = reason
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%d passes: a new epoch or a new order in each", n)
		if j.group.Somewhere(func(r *orders.Rank) bool {
			return slices.ContainsFunc(r.Trainings, func(ps []*orders.Pass) bool { return r.Frozen(ps) && !ps[0].Shuffled() })
		}) {
			c.Reason = fmt.Sprintf("%d passes, in an order that is not shuffled", n)
		}
	}
	return c
}

func (j *judged) finding() finding.Finding {
	first := j.repeats[0].First
	o := first.Object
	n := len(j.training)
	f := finding.Finding{Rule: id, DP: "DP14", Certainty: j.certainty, Loader: j.group.Loader(), Proof: "hook"}
	f.Title = fmt.Sprintf("%s: the epoch of %s stays %d%s", orders.Passes(j.repeats, j.training), orders.Class(o), first.Epoch, j.group.RankNames(j.ranks))
	f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("%s shuffles by its seed and its epoch. As each of %d passes began, %s.epoch was %d.",
		orders.Class(o), n, orders.Sampler(o), first.Epoch), Refs: orders.Begins(j.training)})
	if o.SamplerID != 0 {
		f.Evidence = append(f.Evidence, told(first))
	}
	f.Evidence = append(f.Evidence, orders.Evidence(j.repeats)...)
	f.Cost = orders.Cost(j.training, j.repeats)
	f.Fix = fmt.Sprintf(`# %s: tell the sampler the epoch, on every rank, before each pass
for epoch in range(first_epoch, epochs):
    %s.set_epoch(epoch)
    for batch in loader:
        ...`, j.rank.Loader.At(), orders.Sampler(o))
	f.Verify = j.t.Verify(id)
	f.NotABugIf = "every pass is meant to be in the very same order."
	if j.certainty < finding.Proven {
		f.NotABugIf = j.excuse()
	}
	return f
}

// told says how often set_epoch was called.
func told(p *orders.Pass) finding.Evidence {
	if len(p.Told) == 0 {
		return finding.Evidence{Text: "set_epoch was never called."}
	}
	last := p.Told[len(p.Told)-1]
	e := finding.Evidence{Text: fmt.Sprintf("set_epoch was called %s, the last time by %s with epoch %d.", times(len(p.Told)),
		timeline.Place(p.Loader.Process.Cwd, last.File, last.Line), last.Epoch)}
	e.Refs = []finding.Ref{{Part: p.Loader.Process.Part.Name, Table: "set_epoch", Seq: last.Seq}}
	return e
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// excuse says what the trace leaves open.
func (j *judged) excuse() string {
	r := j.repeats[0]
	var ifs []string
	if !r.SameData() {
		ifs = append(ifs, "the DataLoader that is made anew for each pass has other data each time")
	}
	if r.First.Contract != orders.Shuffles {
		ifs = append(ifs, orders.Class(r.First.Object)+" is meant to give one order, in which its epoch has no part")
	}
	if r.First.Role != timeline.Train || r.Again.Role != timeline.Train {
		ifs = append(ifs, "these passes do not train")
	}
	if len(ifs) == 0 {
		ifs = append(ifs, "the pass that was broken off was repeated on purpose")
	}
	return words.List(ifs) + "."
}

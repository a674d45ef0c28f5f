// Package repeats is the rule order-repeats: a loader that shuffles goes
// through the samples in the order of an earlier pass.
// docs/rules/order-repeats.md explains it.
package repeats

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	DP:      "DP14",
	Title:   "A shuffling loader gives one order in several passes",
	Sources: []collect.Any{orders.Source, values.Source, samples.Source},
	Judge:   detect.Adapt(judge),
}

const (
	id = "order-repeats"
	// enough samples of two passes, each another one at its index: the order is
	// one of other data.
	enough = 8
)

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	c, ledger := collect.Of(e, values.Source), collect.Of(e, samples.Source)
	for _, g := range collect.Of(e, orders.Source).Groups(t) {
		j := &judged{t: t, group: g, c: c, ledger: ledger}
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
	t      *timeline.Timeline
	group  *orders.Group
	c      *values.Contents
	ledger *samples.Attribution

	certainty finding.Certainty
	rank      *orders.Rank // whose training is shown
	training  []*orders.Pass
	repeats   []orders.Repeat // of the surest kind, and less sure ones of the same training
	ranks     []int
	frozen    bool   // sampler-no-set-epoch says it all
	own       string // the class of a sampler of the program's own that gave one order twice
	straight  bool   // an order that climbs came twice
	renewed   bool   // an order came twice, of other data
}

func (j *judged) judge() {
	for _, r := range j.group.Ranks {
		if r.Loader.Iterable() {
			continue
		}
		for _, training := range r.Trainings {
			all := orders.RepeatsThat(training, func(r orders.Repeat) bool { return !j.other(r) })
			found := slices.DeleteFunc(orders.Shuffled(all), j.other)
			j.renewed = j.renewed || len(found) < len(orders.Shuffled(all))
			for _, one := range all {
				if one.First.Contract == orders.Own {
					j.own = orders.Class(one.First.Object)
				}
				j.straight = j.straight || !one.Shuffled
			}
			if len(found) == 0 {
				continue
			}
			if r.Frozen(training) {
				j.frozen = true
				continue
			}
			slices.SortStableFunc(found, func(a, b orders.Repeat) int { return int(certainty(b) - certainty(a)) })
			c := certainty(found[0])
			j.ranks = append(j.ranks, r.Loader.Rank())
			if c > j.certainty || c == j.certainty && len(found) > len(j.repeats) {
				j.certainty, j.rank, j.training, j.repeats = c, r, training, found
			}
		}
	}
}

// other reports whether a repeat is of other data: rollouts, a buffer that was
// filled anew.
func (j *judged) other(r orders.Repeat) bool {
	same, other := values.CompareByIndex(j.c.Samples(j.t, r.First.Pass), j.c.Samples(j.t, r.Again.Pass))
	return len(same) == 0 && len(other) >= enough && j.ledger.Fixed(r.First.Loader) // where random numbers are drawn, it may be the same data, augmented
}

// certainty that one repeated order is a bug.
func certainty(r orders.Repeat) finding.Certainty {
	p, q := r.First, r.Again
	switch {
	case p.Epoch >= 0 && p.Epoch == q.Epoch:
		return finding.Note // it was told that epoch twice, others in between: a pass done over
	case p.Contract == orders.Own || q.Contract == orders.Own:
		return finding.Note // one order may be what it is for: by length, by difficulty
	case p.Contract != orders.Shuffles || q.Contract != orders.Shuffles, !r.SameData(), p.Role != timeline.Train || q.Role != timeline.Train, !r.All:
		return finding.Likely
	}
	return finding.Proven
}

func (j *judged) check() finding.Check {
	c := finding.Check{Rule: id, Loader: j.group.ID, Status: finding.CannotTell}
	gap := j.group.Gap(j.t)
	reason, n := j.group.Nothing()
	switch {
	case j.certainty > finding.Note:
		c.Status = finding.Found
		c.Reason = fmt.Sprintf("%d of %d passes in the order of an earlier one", len(j.repeats), len(j.training))
	case gap != "":
		c.Reason = gap
	case j.group.Iterable():
		c.Status, c.Reason = finding.Clean, "an IterableDataset has no sampler"
	case j.group.Everywhere(func(r *orders.Rank) bool { return r.Eval }):
		c.Status, c.Reason = finding.Clean, "used for evaluation only"
	case j.frozen:
		c.Reason = "one order in several passes, because the sampler is not told the epoch (sampler-no-set-epoch)"
	case reason != "":
		c.Reason = reason
	case j.own != "":
		c.Reason = j.own + " gives one order in several passes: not a sampler of torch's, so it may be meant to"
	case j.renewed:
		c.Reason = "one order in several passes, but what is at an index changes between them"
	case j.certainty == finding.Note:
		c.Status, c.Reason = finding.Clean, "no more than a note: passes of one epoch number"
	case j.straight:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%d passes, in an order that is not shuffled", n)
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%d passes, all in different orders", n)
	}
	return c
}

func (j *judged) finding() finding.Finding {
	f := finding.Finding{Rule: id, DP: "DP14", Certainty: j.certainty, Loader: j.group.Loader(), Proof: "hook"}
	class := orders.Class(j.repeats[0].First.Object)
	f.Title = orders.Passes(j.repeats, j.training)
	if j.certainty == finding.Note {
		f.Title += ", by " + class
	} else {
		f.Title += ", although " + class + " shuffles"
	}
	f.Title += j.group.RankNames(j.ranks)
	f.Evidence = append(orders.Evidence(j.repeats), j.why()...)
	f.Cost = orders.Cost(j.training, j.repeats)
	f.Fix = j.fix()
	f.Verify = j.t.Verify(id)
	f.NotABugIf = j.excuse()
	return f
}

// reset reports whether torch drew the same base seed for both passes.
func reset(r orders.Repeat) bool {
	return r.First.Seeded && r.Again.Seeded && r.First.BaseSeed != 0 && r.First.BaseSeed == r.Again.BaseSeed
}

// why the orders are alike.
func (j *judged) why() []finding.Evidence {
	r := j.repeats[0]
	switch {
	case reset(r) && r.Again.Object.Generator:
		return []finding.Evidence{{Refs: []finding.Ref{r.First.Refs()[0], r.Again.Refs()[0]}, Text: fmt.Sprintf(
			"From the generator given to DataLoader PyTorch drew base seed %d as each of these passes began: it was put back to one state before each.", r.First.BaseSeed)}}
	case reset(r):
		return []finding.Evidence{{Refs: []finding.Ref{r.First.Refs()[0], r.Again.Refs()[0]}, Text: fmt.Sprintf(
			"From its own generator PyTorch drew base seed %d as each of these passes began: torch was seeded anew before each.", r.First.BaseSeed)}}
	case r.First.Epoch >= 0 && r.First.Epoch == r.Again.Epoch:
		return []finding.Evidence{{Refs: []finding.Ref{r.First.Refs()[0], r.Again.Refs()[0]}, Text: fmt.Sprintf("The sampler's epoch was %d in both, and another one in other passes.", r.First.Epoch)}}
	}
	return nil
}

func (j *judged) fix() string {
	r := j.repeats[0]
	at := j.rank.Loader.At()
	switch {
	case r.First.Contract == orders.Own:
		return fmt.Sprintf("# %s: if %s is to shuffle, draw a new order in each call of its __iter__", at, orders.Class(r.First.Object))
	case r.First.Epoch >= 0:
		return fmt.Sprintf("# %s: a new epoch, on every rank, before each pass\nfor epoch in range(first_epoch, epochs):\n    %s.set_epoch(epoch)", at, orders.Sampler(r.First.Object))
	case r.First.Object.Generator && r.First.Object != r.Again.Object:
		return fmt.Sprintf(`# %s: this DataLoader is made anew for each epoch: its generator needs the epoch in its seed
generator = torch.Generator().manual_seed(SEED + epoch)`, at)
	case r.First.Object.Generator:
		return fmt.Sprintf(`# %s: seed the loader's generator once, before the first epoch,
# or, so that each epoch can be repeated by itself, from the epoch as well
for epoch in range(epochs):
    loader.generator.manual_seed(SEED + epoch)
    for batch in loader:
        ...`, at)
	case reset(r):
		return fmt.Sprintf(`# %s: seed torch once, before the first epoch,
# or, so that each epoch can be repeated by itself, from the epoch as well
for epoch in range(epochs):
    torch.manual_seed(SEED + epoch)
    for batch in loader:
        ...`, at)
	}
	return fmt.Sprintf("# %s: seed the generator of %s (%s.generator) once, before the first epoch, not before each", at, orders.Class(r.First.Object), orders.Sampler(r.First.Object))
}

func (j *judged) excuse() string {
	r := j.repeats[0]
	switch {
	case r.First.Contract == orders.Own:
		return orders.Class(r.First.Object) + " is meant to give one order, by length or by difficulty."
	case !r.SameData():
		return "the DataLoader that is made anew for each pass has other data each time."
	case r.First.Role != timeline.Train || r.Again.Role != timeline.Train:
		return "these passes do not train."
	case r.First.Contract == orders.Within:
		return orders.Class(r.First.Object) + " does not decide on the order: " + r.First.Object.BatchSampler + " sorts the samples."
	case !r.All:
		return "the pass that was broken off was repeated on purpose."
	}
	return "every pass is meant to be in the very same order."
}

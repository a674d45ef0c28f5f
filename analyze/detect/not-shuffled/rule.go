// Package notshuffled is the rule not-shuffled: a training goes through its
// samples from the first to the last, in every pass.
// docs/rules/not-shuffled.md explains it.
package notshuffled

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	DP:      dp,
	Title:   "A training walks through its samples 0, 1, 2, ... in every pass",
	Sources: []collect.Any{orders.Source, values.Source},
	Judge:   detect.Adapt(judge),
}

const (
	id = "not-shuffled"
	dp = "DP14"
)

const (
	// few is how many batches are a look at whether a model can overfit, which
	// wants the same ones again: the example of Lightning's documentation of
	// Trainer(overfit_batches=10).
	few = 10
	// enough samples that were the same in two passes: an index stands for one.
	enough = 8
)

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	for _, g := range collect.Of(e, orders.Source).Groups(t) {
		j := &judged{t: t, group: g, c: collect.Of(e, values.Source)}
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
	c     *values.Contents

	certainty finding.Certainty
	training  []*orders.Pass // that is shown: the longest
	ranks     []int
	same      []values.Pair // samples that came twice with the same content
	changed   int           // with another
	labels    labels
	windows   windows
}

func (j *judged) judge() {
	for _, r := range j.group.Ranks {
		if r.Loader.Iterable() || r.Odd > 0 {
			continue
		}
		all := true // straight
		for _, training := range r.Trainings {
			all = all && !slices.ContainsFunc(training, func(p *orders.Pass) bool { return !walks(p) })
		}
		if !all {
			continue
		}
		for _, training := range r.Trainings {
			if len(training) < 2 || slices.ContainsFunc(training, func(p *orders.Pass) bool { return p.Role != timeline.Train }) {
				continue
			}
			j.ranks = append(j.ranks, r.Loader.Rank())
			var lists [][]values.Sample
			for _, p := range training {
				lists = append(lists, j.c.Samples(j.t, p.Pass))
			}
			same, changed := values.CompareByIndex(lists...)
			j.changed += len(changed)
			if len(training) > len(j.training) {
				j.training, j.same, j.labels, j.windows = training, same, labelsOf(lists[0]), windowsOf(lists[0])
			}
		}
	}
	switch {
	case j.training == nil, j.changed > 0:
	case len(j.same) < enough, j.training[0].Batches() <= few, j.labels.mixed(), ready(j.training[0]), j.windows.series():
		j.certainty = finding.Note
	default:
		j.certainty = finding.Likely
	}
}

// walks reports whether a pass goes from the first sample to the last, by a
// sampler that does nothing else. A pass that the program breaks off may be a
// look at a few batches.
func walks(p *orders.Pass) bool {
	return p.Contract == orders.Sequential && p.Straight() && p.All()
}

// ready reports whether the dataset hands out batches, which the order leaves as
// they are: the parts of a text, with a state that is carried from one to the
// next.
func ready(p *orders.Pass) bool { return p.Object.Batched == "no" }

func (j *judged) check() finding.Check {
	c := finding.Check{Rule: id, Loader: j.group.ID, Status: finding.CannotTell}
	gap := j.group.Gap(j.t)
	reason, n := j.group.Nothing()
	walk, own, broken, unknown, told := false, "", false, false, ""
	for _, r := range j.group.Ranks {
		for _, training := range r.Trainings {
			for _, p := range training {
				switch {
				case p.Contract == orders.Own:
					own = orders.Class(p.Object)
				case p.Contract == orders.Shuffles && !p.Shuffled():
					told = orders.Class(p.Object)
				case p.Straight():
					walk = true
					broken = broken || !p.All()
					unknown = unknown || p.Role != timeline.Train
				}
			}
		}
	}
	switch {
	case j.certainty > finding.Note:
		c.Status = finding.Found
		c.Reason = fmt.Sprintf("%d passes of %d samples, each from the first to the last", len(j.training), j.training[0].Samples())
	case gap != "":
		c.Reason = gap
	case j.group.Iterable():
		c.Status, c.Reason = finding.Clean, "an IterableDataset has no sampler"
	case j.group.Everywhere(func(r *orders.Rank) bool { return r.Eval }):
		c.Status, c.Reason = finding.Clean, "used for evaluation only"
	case j.changed > 0:
		c.Reason = "in order, but what is at an index changes between the passes"
	case j.certainty == finding.Note && j.training[0].Batches() <= few:
		c.Reason = fmt.Sprintf("in order, but %d batches or fewer a pass are overfitted on purpose", few)
	case j.certainty == finding.Note && ready(j.training[0]):
		c.Reason = "in order, but it is batches that the dataset hands out (batch_size=None)"
	case j.certainty == finding.Note && j.windows.series():
		c.Reason = "in order, but the samples are windows of a series, which may be meant to come one after another"
	case j.certainty == finding.Note && j.labels.mixed():
		c.Reason = "in order, but the labels come as mixed as if they had been shuffled before"
	case j.certainty == finding.Note:
		c.Reason = "in order, but whether an index is the same sample in each pass is not known"
	case reason != "":
		c.Reason = reason
	case own != "":
		c.Reason = own + ": not a sampler of torch's, so any order may be meant"
	case walk && broken:
		c.Reason = "in order, but broken off in each pass"
	case walk && unknown:
		c.Reason = "in order, but no optimizer stepped in these passes"
	case told != "":
		c.Reason = "not shuffled, as " + told + " must have been told"
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%d passes, not in the order 0, 1, 2, ...", n)
	}
	return c
}

func (j *judged) finding() finding.Finding {
	p := j.training[0]
	l := p.Loader
	f := finding.Finding{Rule: id, DP: dp, Certainty: j.certainty, Loader: j.group.Loader(), Proof: "hook"}
	f.Title = fmt.Sprintf("The training walks through its %s samples 0, 1, 2, ... in each of %d passes%s", words.Number(int64(p.Samples())), len(j.training), j.group.RankNames(j.ranks))
	text := fmt.Sprintf("In each of %d passes %s asked for the samples 0 to %d, one after another, in %d batches.", len(j.training), orders.Class(p.Object), p.Samples()-1, p.Batches())
	f.Evidence = []finding.Evidence{{Text: text, Refs: orders.Begins(j.training)}}
	if len(j.same) > 0 {
		part := l.Process.Part.Name
		f.Evidence = append(f.Evidence, finding.Evidence{
			Refs: []finding.Ref{{Part: part, Table: "digest", Seq: j.same[0].First.Seq}, {Part: part, Table: "digest", Seq: j.same[0].Again.Seq}},
			Text: fmt.Sprintf("%s whose contents were compared were the same in a later pass; none had changed.", words.Upper(words.Count(len(j.same), "sample"))),
		})
	}
	if text := j.labels.text(); text != "" {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: text})
	}
	if j.windows.series() {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: j.windows.text()})
	}
	f.Cost = fmt.Sprintf("%d epochs of the same %d batches, one after another", len(j.training), p.Batches())
	if !ready(p) {
		f.Cost += ": samples that lie side by side in the dataset are always in one batch"
	}
	f.Fix = fmt.Sprintf("# %s\nDataLoader(..., shuffle=True)", l.At())
	f.Verify = j.t.Verify(id)
	f.NotABugIf = "the order of the samples means something (a time series, a curriculum), or the dataset was shuffled when it was written."
	return f
}

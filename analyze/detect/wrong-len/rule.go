// Package wronglen is the rule wrong-len: an index smaller than the length of
// the dataset does not exist, or is a sample once more, or an IterableDataset
// gives another number of samples than its len() says.
// docs/rules/wrong-len.md explains it.
package wronglen

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/deliveries"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	DP:      dp,
	Title:   "__len__ and __getitem__ disagree",
	Sources: []collect.Any{values.Source, deliveries.Source},
	Judge:   detect.Adapt(judge),
}

const (
	id = "wrong-len"
	dp = "DP7"
)

var tables = append(slices.Clone(deliveries.Tables), "exception", "digest")

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	c, d := collect.Of(e, values.Source), collect.Of(e, deliveries.Source)
	missing, fetched := missingOf(t), d.Fetches(t)
	for _, g := range deliveries.Groups(t) {
		v := &verdict{Timeline: t, group: g, c: c, fetched: fetched, gap: g.Gap(t, tables)}
		for _, l := range g.Loaders {
			v.missing = append(v.missing, missing[l]...)
		}
		v.absent()
		if v.certainty == 0 {
			v.wrapped()
			v.counted()
		}
		switch {
		case v.worst != nil:
			findings = append(findings, v.absentFinding())
		case v.wrap != nil && v.wrap.sure > 0:
			findings = append(findings, v.wrapFinding())
		case v.count != nil && v.count.sure > 0:
			findings = append(findings, v.countFinding())
		}
		checks = append(checks, v.check())
	}
	return findings, checks
}

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	group     *deliveries.Group
	c         *values.Contents
	fetched   map[*timeline.WorkerPass]*deliveries.Fetched
	gap       string
	missing   []missing
	worst     *missing
	certainty finding.Certainty // of worst

	wrap  *wrap  // of the rank that shows most
	count *count // of the pass that shows most
	right int    // passes of an IterableDataset that gave as many as its len() says
	why   string // it cannot be told
}

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.group.ID, Status: finding.CannotTell}
	w := v.wrap
	switch {
	case v.certainty > 0:
		c.Status, c.Reason = finding.Found, fmt.Sprintf("%s for sample %d", v.worst.Type, v.worst.Sample)
	case w != nil && w.sure > finding.Note:
		c.Status, c.Reason = finding.Found, fmt.Sprintf("%d pairs of samples are alike, %d apart", w.pairs, w.size)
	case v.count != nil && v.count.sure > finding.Note:
		c.Status, c.Reason = finding.Found, fmt.Sprintf("%d samples, and a length of %d", v.count.got, v.count.asked)
	case len(v.missing) > 0:
		m := v.missing[0]
		c.Reason = fmt.Sprintf("%s for sample %d at %s: it is not told that its index is what is missing", m.Type, m.Sample, v.at(&m))
	case v.gap != "":
		c.Reason = v.gap
	case v.count != nil:
		c.Reason = v.count.why
	case v.right > 0:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%s of as many samples as len() says", words.Count(v.right, "pass"))
	case v.group.Loaders[0].Iterable():
		c.Reason = "an IterableDataset whose length the program did not ask for, or that was not used to its end"
	case w == nil:
		c.Reason = "no sample was missing; whether two indices give the same sample is not known: " + v.why
	case w.repeats > 0:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%s samples, each %d times", words.Number(w.size), w.repeats)
	case w.sure == finding.Note || w.why != "":
		c.Reason = w.why
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("no sample was missing, and of %d of %s samples that were compared none is another one once more", w.compared, words.Number(w.most))
	}
	return c
}

// Package wronglen is the rule wrong-len: an index smaller than the length of
// the dataset does not exist, or is a sample once more, or an IterableDataset
// gives another number of samples than its len() says.
// docs/rules/wrong-len.md explains it.
package wronglen

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	DP:      "DP7",
	Title:   "__len__ and __getitem__ disagree",
	Sources: []collect.Any{failed, values.Source, batches.Requested, batches.Fetched},
	Excuses: excuses,
	Judge:   judge,
}

const id = "wrong-len"

func judge(c *detect.Case) detect.Verdict {
	lookups := detect.Of(c, failed).of(c.Loaders)
	if worst, certainty := surest(lookups); worst != nil {
		return detect.Found(fmt.Sprintf("%s for sample %d", worst.Type, worst.Sample), worst.finding(c, certainty))
	}
	var k compared
	k.lookups = lookups
	k.wrap, k.unknown = wrapped(c)
	k.count, k.right = counted(c)
	var notes []finding.Finding
	switch {
	case k.wrap.sureness() > finding.Note:
		return detect.Found(fmt.Sprintf("%d pairs of samples are alike, %d apart", k.wrap.pairs, k.wrap.size), k.wrap.finding())
	case k.count.sureness() > finding.Note:
		return detect.Found(fmt.Sprintf("%d samples, and a length of %d", k.count.got, k.count.asked), k.count.finding())
	case k.wrap.sureness() == finding.Note:
		notes = append(notes, k.wrap.finding())
	case k.count.sureness() == finding.Note:
		notes = append(notes, k.count.finding())
	}
	return k.without(c.First().Iterable()).Noting(notes...)
}

// compared is what was looked at of one loader.
type compared struct {
	lookups []lookup // that failed
	wrap    *wrap    // nil: no samples of a map-style dataset could be compared
	unknown string   // why
	count   *count   // nil: no pass of an IterableDataset gave another number than its len()
	right   int      // passes that gave as many
}

// without a bug: what there is to say.
func (k *compared) without(iterable bool) detect.Verdict {
	switch {
	case len(k.lookups) > 0:
		l := k.lookups[0]
		return detect.CannotTell(fmt.Sprintf("%s for sample %d at %s: it is not told that its index is what is missing",
			l.Type, l.Sample, l.at()))
	case k.count != nil:
		return detect.CannotTell(k.count.why)
	case k.right > 0:
		return detect.Clean(words.Count(k.right, "pass") + " of as many samples as len() says")
	case iterable:
		return detect.CannotTell("an IterableDataset whose length the program did not ask for, or that was not used to its end")
	case k.wrap == nil:
		return detect.CannotTell("no sample was missing; whether two indices give the same sample is not known: " + k.unknown)
	case k.wrap.repeats > 0:
		return detect.Clean(fmt.Sprintf("%s samples, each %d times", words.Number(k.wrap.size), k.wrap.repeats))
	case k.wrap.why != "":
		return detect.CannotTell(k.wrap.why)
	}
	return detect.Clean(fmt.Sprintf("no sample was missing, and the %s samples, which are the same in each pass, do not begin again",
		words.Number(k.wrap.most)))
}

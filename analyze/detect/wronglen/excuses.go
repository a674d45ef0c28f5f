package wronglen

import (
	"regexp"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
)

// excuses of a length that is not the number of samples.
var excuses = []detect.Excuse{
	{
		Text: "the dataset goes around on purpose, so that an epoch has a chosen number of samples.",
		// what a record of the data says is their number is not chosen for an epoch
		Excluded: of(func(w *wrap) bool { return w.record != "" }),
	},
	{
		Text: "the data themselves repeat with this period, or end with some of the first samples once more.",
		// so many hang on the dataset, and not as many as its length
		Excluded: of(func(w *wrap) bool { return w.holds }),
	},
	{
		Text:     "what differs in two samples that have the same label or number makes them two: the data are in an order that repeats.",
		Excluded: of(func(w *wrap) bool { return w.part == "" }),
	},
	{
		Text:     "the lookup that failed is another one, for a number that is equal to the index by chance.",
		Excluded: of(func(l *lookup) bool { return l.certain }),
	},
	{
		Text: "the few samples that failed are broken themselves.",
		// the error names the index, or no sample beyond the first of them could be read
		Excluded: of(func(l *lookup) bool { return l.named || len(l.beyond) >= enoughBeyond }),
	},
	{
		Text:     "the dataset has changed since its length was asked for.",
		Excluded: of(func(n *count) bool { return n.times > 1 }),
	},
	{
		Text:     "the length was given by hand as about what a pass has (webdataset's with_length), and nothing is reckoned from it.",
		Excluded: of(func(n *count) bool { return !nominal.MatchString(n.object.DatasetClass) }),
	},
}

// nominal is libraries whose streams have the length that the program says.
var nominal = regexp.MustCompile(`^(webdataset|wids)\b`)

// of is an excuse of one kind of finding: the others do not need it.
func of[F *wrap | *lookup | *count](excluded func(F) bool) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool {
		facts, ok := f.Facts.(F)
		return !ok || excluded(facts)
	}
}

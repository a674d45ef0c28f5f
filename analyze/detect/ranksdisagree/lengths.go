package ranksdisagree

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// enough samples that differ between ranks, or that are alike.
const enough = 8

// lengths of the datasets. Those of the program's own classes are not known, but
// the total that their sampler has made of it is.
func (v *verdict) lengths() {
	known := func(l *timeline.Loader) int64 {
		if d, ok := v.c.Dataset(l.Process, l.First()); ok && d.Length >= 0 {
			return d.Length
		}
		return l.First().Length
	}
	what, exact := "", true
	number := known
	for _, l := range v.ranks {
		exact = exact && known(l) >= 0
	}
	if !exact {
		what, number = " (as the samplers count, repeated ones included)", func(l *timeline.Loader) int64 { return l.First().SamplerTotal }
	}
	var counts []string
	for _, l := range v.ranks {
		if number(l) <= 0 {
			return
		}
		counts = append(counts, fmt.Sprintf("rank %d %s", l.Rank(), words.Number(number(l))))
	}
	if !slices.ContainsFunc(v.ranks, func(l *timeline.Loader) bool { return number(l) != number(v.ranks[0]) }) {
		return
	}
	of := int64(len(v.ranks))
	c := v.cause()
	if v.common < enough {
		c.add(ownData)
	}
	c.title = fmt.Sprintf("The ranks' datasets have different lengths: %s", words.List(counts))
	c.cost = fmt.Sprintf("each rank takes every %s index of its own list: where the lists differ, samples are trained on twice in a "+
		"pass, or never", ordinal(of))
	c.fix = "# the same list on every rank, which the sampler deals out; no filter, no file that one rank alone has\n" +
		"files = sorted(files)\n# or, if each rank has files of its own: no DistributedSampler\nDataLoader(dataset, shuffle=True)"
	c.evidence = []finding.Evidence{{Refs: v.refs(), Text: fmt.Sprintf("Samples of the dataset%s: %s. A DistributedSampler on each of the "+
		"%d ranks deals them out by index, as if they were one list.", what, words.List(counts), of)}}
	v.causes = append(v.causes, c)
}

// ordinal of a small number.
func ordinal(n int64) string {
	switch n {
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}

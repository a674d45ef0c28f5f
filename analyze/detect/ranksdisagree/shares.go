package ranksdisagree

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// share is what all ranks asked for in one pass.
type share struct {
	pass          int
	asked         []*batches.Requests
	epochs        []int64 // of the samplers
	refs          []finding.Ref
	length, total int64 // of the dataset, of the samplers
}

// shares of the ranks in each pass: together they are the dataset, once.
func (v *verdict) shares() {
	var found *cause
	passes := 0
	for n := range v.ranks[0].Passes {
		s := v.share(n)
		if s == nil {
			continue
		}
		c := batches.Cover(s.length, s.asked)
		if padding := int(max(s.total-s.length, 0)) + len(v.ranks); c.Often*c.Of <= padding {
			if c.Of == 1 || c.Often == 0 {
				v.covered++
			}
			continue
		}
		one := v.unlike(s, c)
		if one == nil {
			continue
		}
		passes++
		if found == nil {
			found = one
		}
	}
	if found != nil {
		found.cost += fmt.Sprintf("; so in %s", words.Count(passes, "pass"))
		v.causes = append(v.causes, *found)
	}
}

// share of each rank in one pass; nil: that of one of them is not known.
func (v *verdict) share(n int) *share {
	s := &share{pass: n}
	for _, l := range v.ranks {
		if n >= len(l.Passes) {
			return nil
		}
		p := l.Passes[n]
		a, o := v.requests.Of(p), p.DataLoader()
		if !a.Indexed() || !a.Kept() || !p.Exhausted || p.Blind || p.Began == nil {
			return nil
		}
		s.asked, s.epochs = append(s.asked, a), append(s.epochs, p.Began.SamplerEpoch)
		if len(s.refs) < shown {
			s.refs = append(s.refs, ref(l, "pass", p.Began.Seq))
		}
		s.length, s.total = max(s.length, a.Max+1), max(s.total, o.SamplerTotal)
	}
	s.length = max(s.length, v.size(s.total))
	return s
}

// unlike is that the shares do not fit together because the ranks shuffle in
// different ways; nil: why they do not is not seen.
func (v *verdict) unlike(s *share, c batches.Coverage) *cause {
	some := v.cause()
	one := &some
	if !v.listed && v.common < enough {
		one.add(ownData)
	}
	var by, what string
	switch {
	case v.ranks[0].First().Shuffle == "no":
		return nil
	case v.differ(func(o *traces.Loader) int64 { return o.SamplerSeed }):
		what, by = "seeds", "The samplers' seeds differ: "+v.each(func(i int) int64 { return v.ranks[i].First().SamplerSeed })
		one.fix = "# one seed on all ranks: the sampler deals out one permutation\n" +
			"sampler = DistributedSampler(dataset, shuffle=True, seed=SEED)  # not SEED + rank"
		s.refs = append(s.refs, v.refs()...)
	case slices.ContainsFunc(s.epochs, func(e int64) bool { return e != s.epochs[0] }):
		what, by = "epochs", fmt.Sprintf("The samplers' epochs differ in pass %d: %s", s.pass, v.each(func(i int) int64 { return s.epochs[i] }))
		one.fix = "# the same epoch on all ranks, not on rank 0 alone\nfor epoch in range(epochs):\n    sampler.set_epoch(epoch)"
	default:
		return nil
	}
	about := ""
	if c.Of > 1 {
		about = fmt.Sprintf(" (counted on one index of %d)", c.Of)
	}
	never, often := int64(c.Never)*int64(c.Of), words.Number(int64(c.Often)*int64(c.Of))
	length := words.Number(s.length)
	one.title = fmt.Sprintf("The ranks shuffle by different %s: %s of %s samples are on no rank in pass %d", what, words.Number(never),
		length, s.pass)
	one.cost = fmt.Sprintf("%s of %s samples are trained on by no rank in pass %d, and %s times one is trained on again%s",
		words.Number(never), length, s.pass, often, about)
	one.evidence = []finding.Evidence{{Refs: s.refs, Text: fmt.Sprintf("In pass %d the ranks together asked for %s of %s samples, "+
		"and %s times for one that a rank had asked for already%s.", s.pass, words.Number(s.length-never), length, often, about)},
		{Text: by + "."}}
	return one
}

// size of the dataset: its length, or that of a list with one item for each
// sample; else the least that the sampler's total can have been made of.
func (v *verdict) size(total int64) int64 {
	l := v.ranks[0]
	if d, ok := v.c.Dataset(l.Process, l.First()); ok && d.Length >= 0 {
		return d.Length
	}
	if n := l.First().Length; n >= 0 {
		return n
	}
	for _, r := range v.c.Containers(l) {
		if ordered(r.Class) && many(&r) != "values" && v.oneFor(l, &r) {
			return r.Items
		}
	}
	return total - int64(len(v.ranks)) + 1
}

// each names a number of each rank.
func (v *verdict) each(number func(i int) int64) string {
	var texts []string
	for i, l := range v.ranks {
		texts = append(texts, fmt.Sprintf("rank %d %d", l.Rank(), number(i)))
	}
	return words.List(texts)
}

package ranksdisagree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// samples that two ranks had at one index, in any pass. What differs may be
// augmented by a generator of the rank's own, even if it is the same each time:
// so labels have to differ as well, or the sample of one rank has to be found
// under another index on the other.
func (v *verdict) samples() []cause {
	first, all := v.fixed(v.ranks[0]), v.all(v.ranks[0])
	for _, l := range v.ranks[1:] {
		same, not := values.CompareByIndex(all, v.all(l))
		v.alike = max(v.alike, len(same))
		v.another = v.another || len(not) > 0
		other := v.fixed(l)
		var pairs [][2]*values.Sample
		labels := 0
		alike, moved := 0, 0
		here, there := only(first), only(other)
		for content, index := range there {
			if at, ok := here[content]; ok && at >= 0 && index >= 0 && at != index {
				moved++
			}
		}
		for index, s := range other {
			a := first[index]
			if a == nil {
				continue
			}
			switch same, ok := a.Same(&s.Digest); {
			case !ok:
			case same:
				alike++
			default:
				pairs = append(pairs, [2]*values.Sample{a, s})
				if a.Labelled() && s.Labelled() && a.Meta != s.Meta {
					labels++
				}
			}
		}
		if len(pairs) < enough || alike > len(pairs)/enough || (moved < enough || 4*moved < len(pairs)) && labels < enough {
			continue
		}
		return []cause{v.other(l, pairs, moved, labels)}
	}
	return nil
}

// only is the index of each content that comes under no other; else -1.
func only(samples map[int64]*values.Sample) map[[16]byte]int64 {
	found := map[[16]byte]int64{}
	for index, s := range samples {
		if _, again := found[s.Content]; again {
			index = -1
		}
		found[s.Content] = index
	}
	return found
}

func (v *verdict) other(l *timeline.Loader, pairs [][2]*values.Sample, moved, labels int) cause {
	slices.SortFunc(pairs, func(a, b [2]*values.Sample) int { return cmp.Compare(a[0].Index, b[0].Index) })
	var refs []finding.Ref
	for _, p := range pairs[:shown/2] {
		refs = append(refs, ref(v.ranks[0], "digest", p[0].Seq), ref(l, "digest", p[1].Seq))
	}
	how := fmt.Sprintf("%d samples of rank %d are found on rank %d under another index.", moved, l.Rank(), v.ranks[0].Rank())
	c := v.cause()
	if moved < enough || 4*moved < len(pairs) {
		how = fmt.Sprintf("Strings and integers (labels) differ in %d of them.", labels)
		c.add(mixed)
	}
	fix := "# one order on all ranks (os.listdir, glob and sets have none), before the samples are numbered\nfiles = sorted(files)"
	if strings.HasSuffix(l.First().DatasetClass, ".Subset") {
		fix = oneSplit
	}
	c.cost, c.fix = v.chance(), fix
	c.title = fmt.Sprintf("An index is another sample on rank %d than on rank %d", l.Rank(), v.ranks[0].Rank())
	c.evidence = []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("At %d indices, for example %d, ranks %d and %d got different samples, "+
		"each the same in all passes. %s", len(pairs), pairs[0][0].Index, v.ranks[0].Rank(), l.Rank(), how)}}
	return c
}

// compare what the first rank has with what the others do, by contents: samples
// that come once on each. An index does not count: ranks may have numbered the
// samples differently, and each takes a share of the numbers.
func (v *verdict) compare() {
	here := byContent(v.all(v.ranks[0]))
	for _, l := range v.ranks[1:] {
		for content, index := range byContent(v.all(l)) {
			at, ok := here[content]
			if !ok || at < 0 || index < 0 {
				continue
			}
			if v.common++; at != index {
				v.moved++
			}
		}
	}
}

// byContent is the index of each content that comes under one alone; else -1.
func byContent(samples []values.Sample) map[[16]byte]int64 {
	found := map[[16]byte]int64{}
	for i := range samples {
		s := &samples[i]
		if !s.Whole() {
			continue
		}
		if at, again := found[s.Content]; again && at != s.Index {
			found[s.Content] = -1
		} else if !again {
			found[s.Content] = s.Index
		}
	}
	return found
}

// all samples of a rank of which there are digests.
func (v *verdict) all(l *timeline.Loader) (list []values.Sample) {
	for _, p := range l.Passes {
		list = append(list, v.c.Samples(p)...)
	}
	return list
}

// fixed is the samples of a rank by index, if it had some twice, and always with
// the same content.
func (v *verdict) fixed(l *timeline.Loader) map[int64]*values.Sample {
	var lists [][]values.Sample
	for _, p := range l.Passes {
		lists = append(lists, v.c.Samples(p))
	}
	same, other := values.CompareByIndex(lists...)
	if len(same) < enough/2 || len(other) > 0 {
		return nil
	}
	found := map[int64]*values.Sample{}
	for _, list := range lists {
		for i := range list {
			if s := &list[i]; s.Whole() {
				found[s.Index] = s
			}
		}
	}
	return found
}

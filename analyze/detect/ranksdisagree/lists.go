package ranksdisagree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// lists that hang on the dataset: the same items in another order.
func (v *verdict) lists() {
	byPath := map[string][]traces.Attribute{}
	var paths []string
	for _, l := range v.ranks {
		for _, r := range v.c.Containers(l) {
			if byPath[r.Path] == nil {
				paths = append(paths, r.Path)
			}
			byPath[r.Path] = append(byPath[r.Path], r)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		if rows := byPath[path]; len(rows) == len(v.ranks) {
			v.list(path, rows)
		}
	}
}

func (v *verdict) list(path string, rows []traces.Attribute) {
	order, items := false, false // differ
	for i := range rows {
		a, b := &rows[0], &rows[i]
		if a.Class != b.Class || len(b.Ordered) == 0 || !ordered(b.Class) {
			return
		}
		order = order || string(a.Ordered) != string(b.Ordered)
		items = items || !a.Whole || !b.Whole || len(a.Unordered) == 0 || string(a.Unordered) != string(b.Unordered)
	}
	samples := !slices.ContainsFunc(v.ranks, func(l *timeline.Loader) bool { return !v.oneFor(l, &rows[0]) })
	switch {
	case !order:
		v.listed = v.listed || rows[0].Whole && rows[0].Items > v.ranks[0].First().SamplerTotal-v.ranks[0].First().SamplerReplicas
		return
	case items && !samples: // what each rank has of its own
		return
	case v.alike >= enough && !v.another: // an index is one sample on all ranks: it goes by something else
		return
	}
	var refs []finding.Ref
	var texts []string
	for i := range rows[:min(len(rows), shown)] {
		refs = append(refs, ref(v.ranks[i], "attribute", rows[i].Seq))
		texts = append(texts, fmt.Sprintf("rank %d %x", v.ranks[i].Rank(), rows[i].Ordered[:min(len(rows[i].Ordered), 8)]))
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	c := v.cause()
	c.cost = v.chance()
	switch {
	case items:
		c.note = true
		c.title = fmt.Sprintf("%s has other items on other ranks, and a DistributedSampler deals out its indices", path)
		c.fix = "# if each rank has files of its own: no DistributedSampler\nDataLoader(dataset, shuffle=True)"
		c.evidence = []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("Digests of %s: %s.", path, words.List(texts))}}
	default:
		if !samples {
			c.note = true
		}
		if v.moved < enough {
			c.add(partners)
		}
		c.title = fmt.Sprintf("%s has the same %s in another order on other ranks: an index is not one sample", path, many(&rows[0]))
		c.fix = fmt.Sprintf("# %s: one order on all ranks (os.listdir, glob and sets have none)\nself.%s = sorted(self.%s)",
			v.set(&rows[0]), name, name)
		c.evidence = []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("Digests of %s in its order: %s. Sorted, it has one digest on all "+
			"ranks: %x.", path, words.List(texts), rows[0].Unordered[:min(len(rows[0].Unordered), 8)])}}
	}
	v.causes = append(v.causes, c)
}

// chance is what two unrelated orders cost.
func (v *verdict) chance() string {
	never := 1.0
	for range v.ranks {
		never *= 1 - 1/float64(len(v.ranks))
	}
	return fmt.Sprintf("which samples a rank trains on no longer fits the other ranks: with unrelated orders %.0f %% of the samples of a "+
		"pass are on no rank, and as many come again", 100*never)
}

func many(r *traces.Attribute) string {
	if strings.HasSuffix(r.Class, "ndarray") || strings.HasSuffix(r.Class, "Tensor") {
		return "values"
	}
	return words.Number(r.Items) + " items"
}

// set is where an attribute is assigned.
func (v *verdict) set(r *traces.Attribute) string {
	if r.File == "" {
		return "where it is set"
	}
	return timeline.Place(v.ranks[0].Process.Cwd, r.File, r.Line)
}

// ordered reports whether a class has an order that indices go by.
func ordered(class string) bool {
	switch class[strings.LastIndexByte(class, '.')+1:] {
	case "list", "tuple", "range", "ndarray", "Tensor":
		return true
	}
	return false
}

// oneFor reports whether a list has one item for each sample, as far as the length
// is known: the sampler's total is that of the dataset, give or take fewer than
// there are ranks.
func (v *verdict) oneFor(l *timeline.Loader, r *traces.Attribute) bool {
	o := l.First()
	least, most := o.SamplerTotal-o.SamplerReplicas+1, o.SamplerTotal+o.SamplerReplicas-1
	if o.Length >= 0 {
		least, most = o.Length, o.Length
	}
	if o.SamplerTotal <= 0 && o.Length < 0 || r.Items < least {
		return false
	}
	if many(r) != "values" {
		return r.Items <= most
	}
	for width := int64(1); width <= 8; width *= 2 { // bytes of a value
		if r.Items%width == 0 && r.Items/width >= least && r.Items/width <= most {
			return true
		}
	}
	return false
}

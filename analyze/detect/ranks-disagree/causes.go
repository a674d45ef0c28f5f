package disagree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
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
	v.causes = append(v.causes, cause{sure: v.sure(),
		title:    fmt.Sprintf("The ranks' datasets have different lengths: %s", words.List(counts)),
		cost:     fmt.Sprintf("each rank takes every %s index of its own list: where the lists differ, samples are trained on twice in a pass, or never", ordinal(of)),
		fix:      "# the same list on every rank, which the sampler deals out; no filter, no file that one rank alone has\nfiles = sorted(files)\n# or, if each rank has files of its own: no DistributedSampler\nDataLoader(dataset, shuffle=True)",
		evidence: []finding.Evidence{{Refs: v.refs(), Text: fmt.Sprintf("Samples of the dataset%s: %s. A DistributedSampler on each of the %d ranks deals them out by index, as if they were one list.", what, words.List(counts), of)}},
	})
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
	c := cause{sure: v.sure(), cost: v.chance()}
	switch {
	case items:
		c.sure = finding.Note
		c.title = fmt.Sprintf("%s has other items on other ranks, and a DistributedSampler deals out its indices", path)
		c.fix = "# if each rank has files of its own: no DistributedSampler\nDataLoader(dataset, shuffle=True)"
		c.evidence = []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("Digests of %s: %s.", path, words.List(texts))}}
	default:
		if !samples {
			c.sure = finding.Note
		}
		c.title = fmt.Sprintf("%s has the same %s in another order on other ranks: an index is not one sample", path, many(&rows[0]))
		c.fix = fmt.Sprintf("# %s: one order on all ranks (os.listdir, glob and sets have none)\nself.%s = sorted(self.%s)", v.set(&rows[0]), name, name)
		c.evidence = []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("Digests of %s in its order: %s. Sorted, it has one digest on all ranks: %x.", path, words.List(texts), rows[0].Unordered[:min(len(rows[0].Unordered), 8)])}}
	}
	v.causes = append(v.causes, c)
}

// chance is what two unrelated orders cost.
func (v *verdict) chance() string {
	never := 1.0
	for range v.ranks {
		never *= 1 - 1/float64(len(v.ranks))
	}
	return fmt.Sprintf("which samples a rank trains on no longer fits the other ranks: with unrelated orders %.0f %% of the samples of a pass are on no rank, and as many come again", 100*never)
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

// shares of the ranks in each pass: together they are the dataset, once.
func (v *verdict) shares() {
	var found *cause
	passes := 0
	for n := range v.ranks[0].Passes {
		one, total, fits := v.share(n)
		if fits {
			v.covered++
		}
		if one == nil {
			continue
		}
		passes++
		if found == nil {
			found = one
			found.cost = total
		}
	}
	if found != nil {
		found.cost += fmt.Sprintf("; so in %s", words.Count(passes, "pass"))
		v.causes = append(v.causes, *found)
	}
}

// share looks at one pass of all ranks.
func (v *verdict) share(n int) (found *cause, cost string, fits bool) {
	var asked []*values.Asked
	var epochs []int64
	var refs []finding.Ref
	var length, total int64
	for _, l := range v.ranks {
		if n >= len(l.Passes) {
			return nil, "", false
		}
		p := l.Passes[n]
		a, o := v.c.Asked(p), p.DataLoader()
		begin, ok := v.c.Begin(p)
		if a == nil || a.Odd || !a.Kept() || !p.Exhausted || p.Blind || !ok {
			return nil, "", false
		}
		asked, epochs = append(asked, a), append(epochs, begin.SamplerEpoch)
		if len(refs) < shown {
			refs = append(refs, ref(l, "pass", begin.Seq))
		}
		length, total = max(length, a.Max+1), max(total, o.SamplerTotal)
	}
	length = max(length, v.size(total))
	c := values.Cover(length, asked)
	padding := int(max(total-length, 0)) + len(v.ranks)
	if c.Often*c.Of <= padding {
		return nil, "", c.Of == 1 || c.Often == 0
	}
	by, fix := "", ""
	o := v.ranks[0].First()
	switch {
	case o.Shuffle == "no":
	case v.differ(func(o *traces.Loader) int64 { return o.SamplerSeed }):
		by = "The samplers' seeds differ: " + v.each(func(i int) int64 { return v.ranks[i].First().SamplerSeed })
		fix = "# one seed on all ranks: the sampler deals out one permutation\nsampler = DistributedSampler(dataset, shuffle=True, seed=SEED)  # not SEED + rank"
		refs = append(refs, v.refs()...)
	case slices.ContainsFunc(epochs, func(e int64) bool { return e != epochs[0] }):
		by = fmt.Sprintf("The samplers' epochs differ in pass %d: %s", n, v.each(func(i int) int64 { return epochs[i] }))
		fix = "# the same epoch on all ranks, not on rank 0 alone\nfor epoch in range(epochs):\n    sampler.set_epoch(epoch)"
	}
	if by == "" {
		return nil, "", false
	}
	about := ""
	if c.Of > 1 {
		about = fmt.Sprintf(" (counted on one index of %d)", c.Of)
	}
	never, often := c.Never*c.Of, c.Often*c.Of
	cost = fmt.Sprintf("%s of %s samples are trained on by no rank in pass %d, and %s times one is trained on again%s", words.Number(int64(never)), words.Number(length), n, words.Number(int64(often)), about)
	title := "The ranks shuffle by different seeds"
	if strings.HasPrefix(by, "The samplers' epochs") {
		title = "The ranks shuffle by different epochs"
	}
	return &cause{sure: v.sure(), fix: fix,
		title: fmt.Sprintf("%s: %s of %s samples are on no rank in pass %d", title, words.Number(int64(never)), words.Number(length), n),
		evidence: []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("In pass %d the ranks together asked for %s of %s samples, and %s times for one that a rank had asked for already%s.",
			n, words.Number(length-int64(never)), words.Number(length), words.Number(int64(often)), about)}, {Text: by + "."}}}, cost, false
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
			switch same, ok := a.Same(s); {
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
	sure := v.sure()
	if moved < enough || 4*moved < len(pairs) {
		how = fmt.Sprintf("Strings and integers (labels) differ in %d of them.", labels)
		sure = min(sure, finding.Likely)
	}
	fix := "# one order on all ranks (os.listdir, glob and sets have none), before the samples are numbered\nfiles = sorted(files)"
	if strings.HasSuffix(l.First().DatasetClass, ".Subset") {
		fix = oneSplit
	}
	return cause{sure: sure, cost: v.chance(), fix: fix,
		title: fmt.Sprintf("An index is another sample on rank %d than on rank %d", l.Rank(), v.ranks[0].Rank()),
		evidence: []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("At %d indices, for example %d, ranks %d and %d got different samples, each the same in all passes. %s",
			len(pairs), pairs[0][0].Index, v.ranks[0].Rank(), l.Rank(), how)}},
	}
}

// all samples of a rank of which there are digests.
func (v *verdict) all(l *timeline.Loader) (list []values.Sample) {
	for _, p := range l.Passes {
		list = append(list, v.c.Samples(v.Timeline, p)...)
	}
	return list
}

// fixed is the samples of a rank by index, if it had some twice, and always with
// the same content.
func (v *verdict) fixed(l *timeline.Loader) map[int64]*values.Sample {
	var lists [][]values.Sample
	for _, p := range l.Passes {
		lists = append(lists, v.c.Samples(v.Timeline, p))
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

func (v *verdict) finding() finding.Finding {
	c := v.causes[0]
	f := v.group.Finding(v.Timeline, id, "")
	f.Certainty = c.sure
	f.Title, f.Cost, f.Fix = c.title, c.cost, fmt.Sprintf("# %s\n%s", v.ranks[0].At(), c.fix)
	for _, one := range v.causes {
		f.Evidence = append(f.Evidence, one.evidence...)
	}
	switch v.relation {
	case timeline.DataParallel:
		f.Evidence = append(f.Evidence, finding.Evidence{Text: "The gradients of these ranks are reduced together (DDP or FSDP)."})
	default:
		f.Evidence = append(f.Evidence, finding.Evidence{Text: "It was not seen that the gradients of these ranks are reduced together."})
	}
	f.NotABugIf = "each rank is meant to draw from data of its own, and no sample has to come once in each pass."
	return f
}

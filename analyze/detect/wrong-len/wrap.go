package wronglen

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

const (
	// enough pairs of samples that are alike at one distance, all of different
	// contents, and none that contradicts.
	enough = 8
	// rounds after which the data may have a period of their own (hours and days
	// of the week), or the length is chosen.
	rounds = 3
	// seen is how many such pairs would have been compared, if a tenth of the
	// length were too much, for their absence to say something: e^-5 is 0.7 %.
	seen = 5
)

// wrap is a dataset that begins again before its length is reached: what it
// gives for index i it gives for i + size too.
type wrap struct {
	loader      *timeline.Loader
	size        int64
	pairs       int
	shown       [][2]*values.Sample
	least, most int64 // length; most -1: not known
	compared    int   // indices
	repeats     int64 // the length is so many times size: on purpose
	sure        finding.Certainty
	why         string // there is no more to say
}

// wrapped compares samples of map-style datasets with one another.
func (v *verdict) wrapped() {
	for _, l := range v.group.Loaders {
		switch {
		case l.Iterable():
		case !values.Recorded(l.First()):
			v.why = "what samples contain is not in the trace"
		case l.First().DatasetID == 0:
			v.why = "the dataset is put together of others"
		default:
			w := v.look(l)
			if v.wrap == nil || cmp.Or(cmp.Compare(w.sure, v.wrap.sure), cmp.Compare(w.compared, v.wrap.compared)) > 0 {
				v.wrap = w
			}
		}
	}
}

func (v *verdict) look(l *timeline.Loader) *wrap {
	w := &wrap{loader: l}
	w.least, w.most = v.length(l)
	samples := v.fixed(l)
	w.compared = len(samples)
	for _, size := range sizes(samples) {
		if pairs, ok := systematic(samples, size); ok && len(pairs) > w.pairs {
			w.size, w.pairs, w.shown = size, len(pairs), pairs
		}
	}
	times := w.least / max(w.size, 1)
	switch {
	case w.pairs < 3 && w.most < 0:
		w.why = "the length of the dataset is not in the trace"
	case w.pairs < 3 && int64(w.compared) < w.most && int64(w.compared)*int64(w.compared) < 10*seen*w.most:
		w.why = fmt.Sprintf("%d of %s samples are known to have the same content in each pass: too few to tell whether two indices give the same sample", w.compared, words.Number(w.most))
	case w.pairs < 3:
	case w.most < 0:
		w.why = fmt.Sprintf("%d pairs of samples are alike, %d apart, but the length of the dataset is not in the trace", w.pairs, w.size)
	case w.pairs < enough || w.size < enough || w.least <= w.size:
		w.why = fmt.Sprintf("%d pairs of samples are alike, which may be the data", w.pairs)
	case w.least == w.most && w.least%w.size == 0:
		w.repeats = times
	case w.most/w.size > times || w.least%w.size == 0:
		w.why = fmt.Sprintf("%d pairs of samples are alike, %d apart: the dataset may repeat them on purpose", w.pairs, w.size)
	case times >= rounds:
		w.sure = finding.Note
		w.why = fmt.Sprintf("the dataset goes around its %d samples %d times: its data may have a period, or its length may be chosen so", w.size, times)
	default:
		w.sure = finding.Proven
	}
	return w
}

// length of a loader's dataset: the least and the most that it can be.
func (v *verdict) length(l *timeline.Loader) (least, most int64) {
	if n := l.First().Length; n >= 0 {
		return n, n
	}
	if d, ok := v.c.Dataset(l.Process, l.First()); ok && d.Length >= 0 {
		return d.Length, d.Length
	}
	most = -1
	bound := func(from, to int64) {
		least = max(least, from)
		if to >= 0 && (most < 0 || to < most) {
			most = to
		}
	}
	for _, p := range l.Passes {
		a, o := v.c.Asked(p), p.DataLoader()
		if a == nil || a.Odd || p.Blind || !torchs(o) {
			continue
		}
		bound(a.Max+1, -1)
		n := int64(a.Samples)
		switch {
		case o.SamplerReplicas > 0 && o.SamplerTotal > 0: // it repeats or leaves out fewer than there are ranks
			bound(o.SamplerTotal-o.SamplerReplicas+1, o.SamplerTotal+o.SamplerReplicas-1)
		case o.SamplerReplicas > 0 || !p.Exhausted || o.Replacement == "yes":
		case !o.DropLast && n == a.Max+1:
			bound(n, n)
		case o.DropLast && o.BatchSize > 0 && a.Max < n+int64(o.BatchSize)-1:
			bound(n, n+int64(o.BatchSize)-1)
		}
	}
	if most >= 0 && least > most {
		return least, -1
	}
	return least, most
}

// torchs reports whether the indices are those of a sampler of torch's that asks
// for all below a length.
func torchs(o *traces.Loader) bool {
	switch o.BatchSampler {
	case "", "torch.utils.data.sampler.BatchSampler":
		return slices.Contains(whole, o.Sampler)
	}
	return false
}

// fixed is one sample of each index whose content is known, is known as a whole,
// and was the same in all passes.
func (v *verdict) fixed(l *timeline.Loader) (samples []*values.Sample) {
	byIndex := map[int64]*values.Sample{}
	changes := map[int64]bool{}
	for _, p := range l.Passes {
		list := v.c.Samples(v.Timeline, p)
		for i := range list {
			s := &list[i]
			switch first := byIndex[s.Index]; {
			case !s.Whole():
			case first == nil:
				byIndex[s.Index] = s
			case first.Content != s.Content:
				changes[s.Index] = true
			}
		}
	}
	for index, s := range byIndex {
		if !changes[index] {
			samples = append(samples, s)
		}
	}
	slices.SortFunc(samples, func(a, b *values.Sample) int { return cmp.Compare(a.Index, b.Index) })
	return samples
}

// sizes are those that a dataset can have which gives these samples: the
// greatest common divisor of all distances between samples that are alike, and,
// as some rows of the data may be equal, the most frequent distance.
func sizes(samples []*values.Sample) (list []int64) {
	last := map[[16]byte]int64{}
	often := map[int64]int{}
	var all int64
	for _, s := range samples {
		if before, ok := last[s.Content]; ok {
			all = gcd(all, s.Index-before)
			often[s.Index-before]++
		}
		last[s.Content] = s.Index
	}
	var most int64
	for d, n := range often {
		if n > often[most] || n == often[most] && d < most {
			most = d
		}
	}
	for _, n := range []int64{all, most} {
		if n > 0 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// systematic pairs are those of one remainder, of which all samples are alike:
// one pair for each content. Hardly any content is found at two remainders.
func systematic(samples []*values.Sample, size int64) (pairs [][2]*values.Sample, ok bool) {
	first := map[int64]*values.Sample{}
	at := map[[16]byte]int64{}
	paired := map[int64]bool{}
	elsewhere := 0
	for _, s := range samples {
		r := s.Index % size
		if one, there := at[s.Content]; there && one != r {
			elsewhere++
		}
		at[s.Content] = r
		switch before := first[r]; {
		case before == nil:
			first[r] = s
		case before.Content != s.Content:
			return nil, false
		case !paired[r]:
			paired[r] = true
			pairs = append(pairs, [2]*values.Sample{before, s})
		}
	}
	all, different := len(pairs), map[[16]byte]bool{}
	pairs = slices.DeleteFunc(pairs, func(p [2]*values.Sample) bool {
		again := different[p[0].Content]
		different[p[0].Content] = true
		return again
	})
	return pairs, 4*max(elsewhere, all-len(pairs)) <= all
}

func (v *verdict) wrapFinding() finding.Finding {
	w := v.wrap
	f := v.group.Finding(v.Timeline, id, dp)
	f.Certainty = w.sure
	length := words.Number(w.most)
	if w.least != w.most {
		length = fmt.Sprintf("%s to %s", words.Number(w.least), length)
	}
	name := w.loader.First().DatasetClass
	f.Title = fmt.Sprintf("%s has %s samples, and a length of %s: it begins again at index %d", name, words.Number(w.size), length, w.size)
	part := w.loader.Process.Part.Name
	var refs []finding.Ref
	for _, p := range w.shown[:min(len(w.shown), 4)] {
		refs = append(refs, finding.Ref{Part: part, Table: "digest", Seq: p[0].Seq}, finding.Ref{Part: part, Table: "digest", Seq: p[1].Seq})
	}
	one := w.shown[0]
	f.Evidence = []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("%d pairs of samples whose indices differ by a multiple of %d are the same bit for bit, for example %d and %d (digest %x of both); none of %d samples that were compared contradicts, and the pairs differ from one another.",
		w.pairs, w.size, one[0].Index, one[1].Index, one[0].Content[:8], w.compared)}}
	more := w.least - w.size
	f.Cost = fmt.Sprintf("%s of %s samples of each pass come again: they count %d times, the others %s", words.Number(more), words.Number(w.least), (w.least+w.size-1)/w.size, once(w))
	f.Fix = fmt.Sprintf(`# in %s: the length of what __getitem__ reads, not one from a header or another list
def __len__(self):
    return len(self.items)  # %d
# and no lookup that goes around (index %% n, np.take(..., mode="wrap")): let it raise IndexError`, name, w.size)
	f.NotABugIf = "the dataset goes around on purpose, to make a pass of a chosen length, or the data themselves repeat with this period."
	return f
}

func once(w *wrap) string {
	if n := w.least / w.size; n > 1 {
		return fmt.Sprint(n)
	}
	return "once"
}

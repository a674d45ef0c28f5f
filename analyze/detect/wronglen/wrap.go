package wronglen

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
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

// wrapped compares samples of map-style datasets with one another: it is the rank
// that shows most; nil: none can be compared, and why.
func wrapped(c *detect.Case) (worst *wrap, unknown string) {
	contents, requests := detect.Of(c, values.Source), detect.Of(c, batches.Requested)
	for _, l := range c.Loaders {
		switch {
		case l.Iterable():
		case !values.Recorded(l.First()):
			unknown = "what samples contain is not in the trace"
		case l.First().DatasetID == 0:
			unknown = "the dataset is put together of others"
		default:
			w := &wrap{loader: l}
			w.least, w.most = lengthOf(l, contents, requests)
			w.look(fixed(l, contents))
			w.judge()
			if worst == nil || cmp.Or(cmp.Compare(w.sure, worst.sure), cmp.Compare(w.compared, worst.compared)) > 0 {
				worst = w
			}
		}
	}
	return worst, unknown
}

// lengthOf a loader's dataset: the least and the most that it can be.
func lengthOf(l *timeline.Loader, contents *values.Contents, requests batches.ByPass[batches.Requests]) (least, most int64) {
	if n := l.First().Length; n >= 0 {
		return n, n
	}
	if d, ok := contents.Dataset(l.Process, l.First()); ok && d.Length >= 0 {
		return d.Length, d.Length
	}
	most = -1
	for _, p := range l.Passes {
		from, to := boundsOf(p, requests.Of(p))
		least = max(least, from)
		if to >= 0 && (most < 0 || to < most) {
			most = to
		}
	}
	if most >= 0 && least > most {
		return least, -1
	}
	return least, most
}

// look finds the size that most pairs of samples speak for.
func (w *wrap) look(samples []*values.Sample) {
	w.compared = len(samples)
	for _, size := range sizes(samples) {
		if pairs, ok := systematic(samples, size); ok && len(pairs) > w.pairs {
			w.size, w.pairs, w.shown = size, len(pairs), pairs
		}
	}
}

// judge says what the pairs of samples mean.
func (w *wrap) judge() {
	if w.pairs < 3 {
		switch compared := int64(w.compared); {
		case w.most < 0:
			w.why = "the length of the dataset is not in the trace"
		case compared < w.most && compared*compared/(10*seen) < w.most:
			w.why = fmt.Sprintf("%d of %s samples are known to have the same content in each pass: "+
				"too few to tell whether two indices give the same sample", w.compared, words.Number(w.most))
		}
		return
	}
	switch times := w.least / w.size; {
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
		w.why = fmt.Sprintf("the dataset goes around its %d samples %d times: its data may have a period, or its length may be chosen so",
			w.size, times)
	default:
		w.sure = finding.Proven
	}
}

// sureness that it is a bug; 0: there is none, or there was nothing to compare.
func (w *wrap) sureness() finding.Certainty {
	if w == nil {
		return 0
	}
	return w.sure
}

// fixed is one sample of each index whose content is known, is known as a whole,
// and was the same in all passes.
func fixed(l *timeline.Loader, contents *values.Contents) (samples []*values.Sample) {
	byIndex := map[int64]*values.Sample{}
	changes := map[int64]bool{}
	for _, p := range l.Passes {
		list := contents.Samples(p)
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

func (w *wrap) finding() finding.Finding {
	name, length := w.loader.First().DatasetClass, words.Number(w.most)
	if w.least != w.most {
		length = words.Number(w.least) + " to " + length
	}
	var refs []finding.Ref
	for _, pair := range w.shown[:min(len(w.shown), 4)] {
		for _, s := range pair {
			refs = append(refs, finding.Ref{Part: w.loader.Process.Part.Name, Table: "digest", Seq: s.Seq})
		}
	}
	one, others := w.shown[0], "once"
	if n := w.least / w.size; n > 1 {
		others = fmt.Sprint(n)
	}
	return finding.Finding{
		Certainty: w.sure,
		Title:     fmt.Sprintf("%s has %s samples, and a length of %s: it begins again at index %d", name, words.Number(w.size), length, w.size),
		Evidence: []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("%d pairs of samples whose indices differ by a multiple of %d "+
			"are the same bit for bit, for example %d and %d (digest %x of both); none of %d samples that were compared contradicts, "+
			"and the pairs differ from one another.",
			w.pairs, w.size, one[0].Index, one[1].Index, one[0].Content[:8], w.compared)}},
		Cost: fmt.Sprintf("%s of %s samples of each pass come again: they count %d times, the others %s",
			words.Number(w.least-w.size), words.Number(w.least), (w.least-1)/w.size+1, others),
		Fix: fmt.Sprintf(`# in %s: the length of what __getitem__ reads, not one from a header or another list
def __len__(self):
    return len(self.items)  # %d
# and no lookup that goes around (index %% n, np.take(..., mode="wrap")): let it raise IndexError`, name, w.size),
		NotABugIf: "the dataset goes around on purpose, to make a pass of a chosen length, or the data themselves repeat with this period.",
	}
}

package wronglen

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/digests"
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
)

// wrap is a dataset that begins again before its length is reached: what it
// gives for index i it gives for i + size too.
type wrap struct {
	loader      *timeline.Loader
	size        int64
	pairs       int
	shown       [][2]*given
	least, most int64 // length; most -1: not known
	compared    int   // indices
	again       int   // of them, that had the same content in several passes
	changed     int   // indices whose content is another in each pass
	part        string
	repeats     int64 // the length is so many times size: on purpose
	sure        finding.Certainty
	why         string // there is no more to say

	long   bool   // in one as many as its length, and in none as size
	holds  bool   // so many items as size hang on the dataset in a container, and in none as many as its length
	record string // a dictionary on the dataset that has the length, and is about the data: header.rows
}

// given is a sample as it was given for an index: by its content, or where the
// collate function of the program reads by what a short one holds, by its row of
// the batch.
type given struct {
	*values.Sample
	key    digests.Sum
	passes int // that had it
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
			all := contentsOf(l, contents)
			w.look(all)
			if w.changed > 0 && w.pairs == 0 {
				w.parts(l, contents)
			}
			w.held(l, contents)
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
func (w *wrap) look(all map[int64]*given) {
	var list []*given
	for _, g := range all {
		switch {
		case g.Sample == nil:
			w.changed++
			continue
		case g.passes > 1:
			w.again++
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *given) int { return cmp.Compare(a.Index, b.Index) })
	w.compared = len(list)
	for _, size := range sizes(list) {
		if pairs, ok := systematic(list, size); ok && len(pairs) > w.pairs {
			w.size, w.pairs, w.shown = size, len(pairs), pairs
		}
	}
}

// held is what hangs on the dataset: how many items there are, and who says so.
func (w *wrap) held(l *timeline.Loader, contents *values.Contents) {
	d, ok := contents.Dataset(l.Process, l.First())
	if !ok || w.size == 0 {
		return
	}
	long := w.least == w.most && slices.Contains(d.Sizes, w.most)
	w.holds = slices.Contains(d.Sizes, w.size) && !long
	w.long = long && !slices.Contains(d.Sizes, w.size)
	for _, counted := range strings.Split(d.Counts, ",") {
		name, number, _ := strings.Cut(counted, "=")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= w.least && n <= w.most && aboutData.MatchString(name) &&
			!chosen.MatchString(name) {
			w.record = name
		}
	}
}

// Names of what is known about data, and of what is chosen for a training.
var (
	aboutData = regexp.MustCompile(`(?i)header|meta|manifest|index|catalog|info|stat|attr|summary|count|total|rows|records|entries`)
	chosen    = regexp.MustCompile(`(?i)epoch|step|iter|virtual|repeat|batch|cfg|conf|opt|arg|param|train|setting`)
)

// judge says what the pairs of samples mean.
func (w *wrap) judge() {
	switch times := w.least / max(w.size, 1); {
	case w.pairs == 0:
		w.alone()
	case w.most < 0:
		w.why = fmt.Sprintf("%d pairs of samples are alike, %d apart, but the length of the dataset is not in the trace", w.pairs, w.size)
	case w.long:
		w.why = fmt.Sprintf("%s of samples %s alike, %d apart, but %s items hang on the dataset: the data hold samples several times",
			words.Count(w.pairs, "pair"), are(w.pairs), w.size, words.Number(w.most))
	case w.holds && w.least == w.most && w.size+int64(w.pairs) == w.most: // the last ones go around, however few
		w.sure = finding.Proven
	case w.pairs < enough || w.size < enough || w.least <= w.size:
		w.why = fmt.Sprintf("%s alike, which may be the data", words.Count(w.pairs, "pair")+" of samples "+are(w.pairs))
	case w.part != "" && w.least%w.size == 0:
		w.why = fmt.Sprintf("the samples after %d have the %ss of those before, and what else is in them is another in each pass", w.size, w.part)
	case w.least == w.most && w.least%w.size == 0:
		w.repeats = times
	case w.most/w.size > times || w.least%w.size == 0:
		w.why = fmt.Sprintf("%d pairs of samples are alike, %d apart: the dataset may repeat them on purpose", w.pairs, w.size)
	case times >= rounds:
		w.sure = finding.Note
		w.why = fmt.Sprintf("the dataset goes around its %d samples %d times: its data may have a period, or its length may be chosen so",
			w.size, times)
	case w.part != "":
		w.sure = finding.Likely
	default:
		w.sure = finding.Proven
	}
}

// alone says why it is not known that no two indices give the same sample, where none was seen to.
func (w *wrap) alone() {
	switch {
	case w.most < 0:
		w.why = "the length of the dataset is not in the trace"
	case int64(w.again) < w.most:
		all := words.Number(w.most)
		if w.least != w.most {
			all = "at most " + all
		}
		w.why = fmt.Sprintf("%d of %s samples are known to have the same content in each of several passes: "+
			"too few to exclude that two indices give the same sample", w.again, all)
	}
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// exact reports whether the size is that of the data: of samples that were looked at
// here and there it may be a multiple of it.
func (w *wrap) exact() bool {
	return w.least == w.most && (w.holds || 2*int64(w.compared+w.changed) >= w.most)
}

// sureness that it is a bug; 0: there is none, or there was nothing to compare.
func (w *wrap) sureness() finding.Certainty {
	if w == nil {
		return 0
	}
	return w.sure
}

// contentsOf is one sample of each index whose content is known, and whether it was
// the same in all passes: else it is without a Sample.
func contentsOf(l *timeline.Loader, contents *values.Contents) map[int64]*given {
	byIndex := map[int64]*given{}
	for _, p := range l.Passes {
		list := contents.Samples(p)
		for i := range list {
			s := &list[i]
			key, ok := content(s)
			if !ok {
				continue
			}
			switch g := byIndex[s.Index]; {
			case g == nil:
				byIndex[s.Index] = &given{s, key, 1}
			case g.key == key:
				g.passes++
			default:
				g.Sample = nil
			}
		}
	}
	return byIndex
}

// content of a sample, if all of it is known.
func content(s *values.Sample) (key digests.Sum, ok bool) {
	switch {
	case s.Rowed.Known():
		return s.Row, s.Rowed.Kind&digests.All != 0
	case s.Rowed.Sought && s.Brief(): // a name of something, for all that is known
		return key, false
	}
	return s.Content, s.Whole()
}

// sizes are those that a dataset can have which gives these samples: the
// greatest common divisor of all distances between samples that are alike, and,
// as some rows of the data may be equal, the most frequent distance.
func sizes(samples []*given) (list []int64) {
	last := map[digests.Sum]int64{}
	often := map[int64]int{}
	var all int64
	for _, s := range samples {
		if before, ok := last[s.key]; ok {
			all = gcd(all, s.Index-before)
			often[s.Index-before]++
		}
		last[s.key] = s.Index
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
func systematic(samples []*given, size int64) (pairs [][2]*given, ok bool) {
	first := map[int64]*given{}
	at := map[digests.Sum]int64{}
	paired := map[int64]bool{}
	elsewhere := 0
	for _, s := range samples {
		r := s.Index % size
		if one, there := at[s.key]; there && one != r {
			elsewhere++
		}
		at[s.key] = r
		switch before := first[r]; {
		case before == nil:
			first[r] = s
		case before.key != s.key:
			return nil, false
		case !paired[r]:
			paired[r] = true
			pairs = append(pairs, [2]*given{before, s})
		}
	}
	all, different := len(pairs), map[digests.Sum]bool{}
	pairs = slices.DeleteFunc(pairs, func(p [2]*given) bool {
		again := different[p[0].key]
		different[p[0].key] = true
		return again
	})
	return pairs, 4*max(elsewhere, all-len(pairs)) <= all
}

func (w *wrap) finding() finding.Finding {
	name, length, size := w.loader.First().DatasetClass, words.Number(w.most), words.Number(w.size)
	if w.least != w.most {
		length = "at least " + words.Number(w.least)
	}
	title := fmt.Sprintf("%s has %s samples, and a length of %s: it begins again at index %d", name, size, length, w.size)
	if !w.exact() {
		title = fmt.Sprintf("%s gives each sample again %s indices on, below its length of %s", name, size, length)
	}
	cost := "samples come again within a pass, and count more often than the others"
	if others := w.least / w.size; w.exact() {
		cost = fmt.Sprintf("%s of %s samples of each pass come again: they count %d times, the others %s", words.Number(w.least-w.size),
			words.Number(w.least), (w.least-1)/w.size+1, map[bool]string{true: "once", false: fmt.Sprint(others)}[others == 1])
	}
	f := finding.Finding{
		Certainty: w.sure,
		Title:     title,
		Evidence:  []finding.Evidence{w.evidence()},
		Cost:      cost,
		Fix: fmt.Sprintf(`# in %s: the length of what __getitem__ reads, not one from a header or another list
def __len__(self):
    return len(self.items)  # %d
# and no lookup that goes around (index %% n, np.take(..., mode="wrap")): let it raise IndexError`, name, w.size),
		Facts: w,
	}
	if w.holds {
		f.Evidence = append(f.Evidence, finding.Evidence{
			Text: fmt.Sprintf("A container of %s items hangs on the dataset, and none of %s.", size, length)})
	}
	if w.record != "" {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("The length is what dataset.%s says.", w.record)})
	}
	return f
}

func (w *wrap) evidence() finding.Evidence {
	e := finding.Evidence{}
	for _, pair := range w.shown[:min(len(w.shown), 4)] {
		for _, s := range pair {
			e.Refs = append(e.Refs, finding.Ref{Part: w.loader.Process.Part.Name, Table: "digest", Seq: s.Seq})
		}
	}
	one := w.shown[0]
	if w.part != "" {
		e.Text = fmt.Sprintf("%d pairs of samples whose indices differ by %d have the same %s, for example %d and %d; none contradicts, "+
			"and what else is in a sample is another in each pass.", w.pairs, w.size, w.part, one[0].Index, one[1].Index)
		return e
	}
	e.Text = fmt.Sprintf("%d pairs of samples whose indices differ by a multiple of %d are the same bit for bit, for example %d and %d "+
		"(digest %x of both); none of %d samples that were compared contradicts, and the pairs differ from one another.",
		w.pairs, w.size, one[0].Index, one[1].Index, one[0].key[:8], w.compared)
	return e
}

package shardduplicateworkers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// shownPairs is how many pairs of workers the evidence tells of.
const shownPairs = 4

func (v *verdict) finding(s *shared) (f finding.Finding) {
	f.Certainty, f.Facts = s.certainty, s
	f.Loader.At = s.pass.Loader.At()
	class := s.pass.Loader.First().DatasetClass
	f.Title, f.Cost = v.told(s, words.Last(class))
	if v.passes() > 1 {
		f.Title += fmt.Sprintf(", in %d passes", v.times())
	}
	for _, t := range s.pairs[:min(len(s.pairs), shownPairs)] {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: text(t), Refs: refs(t)})
	}
	if s.pairs[0].Scattered {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("In all pairs of workers, in all passes, %d contents were found "+
			"in both, bit by bit; %.0f are expected if both read the same, of %d samples that were looked at. "+
			"%d contents came twice in one worker. dptrace record --digest full looks at all samples.",
			v.scatter.Shared, v.scatter.Expected, v.scatter.of, v.scatter.Own)})
	}
	if e, ok := v.files(s); ok {
		f.Evidence = append(f.Evidence, e)
	}
	if c := s.census; c != nil && c.Shared > 0 && !s.pairs[0].Every() {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("Of %s samples that were delivered in this pass %s were looked at. "+
			"%s of these are different; %s came from several workers.", words.Number(int64(c.Delivered)), words.Number(int64(c.Samples)),
			words.Number(int64(c.Samples-c.Surplus)), words.Number(int64(c.Shared)))})
	}
	if left := v.left(); left != "" {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: words.Upper(left) + "."})
	}
	f.Fix = fix(f.Loader.At, class, s.ordered())
	if s.seams {
		f.Fix = seamFix(f.Loader.At, class, s.census.Seam)
	}
	return f
}

// told is the title and the cost.
func (v *verdict) told(s *shared, class string) (title, cost string) {
	workers, t, all := s.workers(), s.pairs[0], delivering(v, s.pass)
	switch {
	case s.seams:
		n := s.census.Seam
		return fmt.Sprintf("%s at the end of each worker's share of %s %s the beginning of the next one's", words.Upper(words.Count(n, "sample")),
				class, map[bool]string{true: "is", false: "are"}[n == 1]),
			fmt.Sprintf("%s of %s samples count twice in each epoch", words.Number(int64(s.census.Shared)),
				words.Number(int64(s.census.Samples-s.census.Surplus)))
	case t.By == samples.Payload:
		return fmt.Sprintf("%s read samples of %s with the same %s: %s that were compared", words.Upper(words.Ints("worker", workers)), class,
				t.Payload.Title(), words.Share(t.Equal, t.Both)),
			fmt.Sprintf("these samples count %d times in an epoch", len(workers))
	case t.Every() && len(workers) == all:
		return fmt.Sprintf("Every sample is delivered %d times: %s read all of %s", len(workers),
				words.Of(len(workers), len(workers), "worker"), class),
			fmt.Sprintf("%s; %d workers do the work of one, an epoch is %d times as long as the data, and each sample counts %d times in it",
				s.counts(len(workers)), len(workers), len(workers), len(workers))
	case t.Scattered:
		return fmt.Sprintf("%s read the same samples of %s, each in an order of its own", words.Upper(words.Of(all, all, "worker")), class),
			fmt.Sprintf("by estimate %s, so that each sample counts %d times in an epoch", s.counts(all), all)
	case t.Partly && s.census != nil:
		c := s.census
		return fmt.Sprintf("%s samples of %s come from several workers, of %s that are different", words.Number(int64(c.Shared)), class,
				words.Number(int64(c.Samples-c.Surplus))),
			fmt.Sprintf("%s samples are delivered more than once in each epoch", words.Number(int64(c.Shared)))
	case t.Partly:
		return fmt.Sprintf("%s read %d samples in a row that are the same, of %s", words.Upper(words.Ints("worker", workers)), t.Equal, class),
			fmt.Sprintf("at least %d samples count twice in each epoch", t.Equal)
	}
	return fmt.Sprintf("%s read the same samples of %s: %s that were compared", words.Upper(words.Ints("worker", workers)), class,
			words.Share(t.Equal, t.Both)),
		fmt.Sprintf("these samples count %d times in each epoch", len(workers))
}

// passes that the loader was iterated in.
func (v *verdict) passes() (n int) {
	for _, l := range v.ranks {
		n = max(n, len(l.Passes))
	}
	return n
}

// delivering is how many workers of a pass deliver samples.
func delivering(v *verdict, p *timeline.Pass) (n int) {
	for _, w := range p.Workers {
		if r := v.ledger.Read(w); r != nil && r.Samples > 0 {
			n++
		}
	}
	return n
}

// workers that read the same as another.
func (s *shared) workers() (numbers []int) {
	for _, t := range s.pairs {
		numbers = append(numbers, t.A.Worker.Number, t.B.Worker.Number)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// counts says how many samples so many workers fetched, and how many of them are
// different.
func (s *shared) counts(workers int) string {
	t := s.pairs[0]
	n := t.A.Samples * workers
	return fmt.Sprintf("%s samples were delivered, %s of them different", words.Number(int64(n)), words.Number(int64(t.A.Samples)))
}

func text(t *samples.Twins) string {
	a, b, p := t.A.Worker, t.B.Worker, t.A.Worker.Pass
	where := fmt.Sprintf("Pass %d", p.Number)
	if r := p.Loader.Rank(); r >= 0 {
		where += fmt.Sprintf(" of rank %d", r)
	}
	read := fmt.Sprintf("worker %d read %d samples, worker %d %d", a.Number, t.A.Samples, b.Number, t.B.Samples)
	what := map[samples.Basis]string{samples.Whole: "in all of their contents, bit by bit", samples.Chunks: "in pieces of their contents",
		samples.Texts: "in the texts in them", samples.Rows: "in the rows of the batches that they have become, bit by bit",
		samples.Payload: "in their " + t.Payload.Title()}[t.By]
	if n := t.Became.Same; n > 0 && t.By != samples.Payload {
		what += fmt.Sprintf(", and so are %d of their rows in the batches", n)
	}
	if len(t.Payload.Apart) > 0 {
		what += " (and not in " + words.List(t.Payload.Others()) + ")"
	}
	switch {
	case t.Partly && t.Equal == 1:
		return fmt.Sprintf("%s: %s. The last one of worker %d is the first one of worker %d, bit by bit.", where, read, a.Number, b.Number)
	case t.Partly && t.Equal < enough:
		return fmt.Sprintf("%s: %s. The last %d of worker %d are the first ones of worker %d, bit by bit.",
			where, read, t.Equal, a.Number, b.Number)
	case t.Partly:
		return fmt.Sprintf("%s: %s. %d in a row are equal %s: from position %d of worker %d, and %d of worker %d.", where, read, t.Equal, what,
			t.First, a.Number, t.FirstOfB, b.Number)
	case t.Scattered:
		return fmt.Sprintf("%s: %s. Of those that were looked at %d are in both, equal %s.", where, read, t.Equal, what)
	case t.Anywhere:
		return fmt.Sprintf("%s: %s. %s samples of worker %d are among those of worker %d, equal %s.", where, read,
			words.Share(t.Equal, t.Both), a.Number, b.Number, what)
	}
	return fmt.Sprintf("%s: %s. At %s positions that were compared they are equal %s.", where, read, words.Share(t.Equal, t.Both), what)
}

func refs(t *samples.Twins) (refs []finding.Ref) {
	for _, r := range []*samples.Read{t.A, t.B} {
		if seq, ok := r.Seq(); ok {
			refs = append(refs, finding.Ref{Part: r.Worker.Pass.Loader.Process.Part.Name, Table: "digest", Seq: seq})
		}
	}
	return refs
}

// files that these workers opened, all of them.
func (v *verdict) files(s *shared) (finding.Evidence, bool) {
	t := s.pairs[0]
	if t.A.Worker.Process == nil || t.B.Worker.Process == nil || t.A.Worker.Process == t.B.Worker.Process {
		return finding.Evidence{}, false
	}
	paths, seqs := v.ledger.Files([]*timeline.Process{t.A.Worker.Process, t.B.Worker.Process})
	if len(paths) == 0 {
		return finding.Evidence{}, false
	}
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	e := finding.Evidence{Text: fmt.Sprintf("Both of them opened %s: %s.", words.Count(len(paths), "file"), words.List(names))}
	for _, seq := range seqs[:min(len(seqs), shownPairs)] {
		e.Refs = append(e.Refs, finding.Ref{Part: t.A.Worker.Pass.Loader.Process.Part.Name, Table: "opened", Seq: seq})
	}
	return e, true
}

// ordered reports whether all of them read the same in one order.
func (s *shared) ordered() bool {
	return !slices.ContainsFunc(s.pairs, func(t *samples.Twins) bool {
		return t.Anywhere || t.Scattered || t.Partly && t.First != t.FirstOfB
	})
}

// seamFix is for shares that are ranges.
func seamFix(at, class string, overlap int) string {
	return fmt.Sprintf(`# %s: in __iter__ of %s, the range of a worker ends %s before the next one's begins
info = torch.utils.data.get_worker_info()
for i in range(n * info.id // info.num_workers, n * (info.id + 1) // info.num_workers):  # n: of all samples; no "+ 1" at the end
    yield samples[i]`, at, words.Last(class), words.Count(overlap, "sample"))
}

func fix(at, class string, ordered bool) string {
	switch module, _, _ := strings.Cut(class, "."); module {
	case "webdataset", "wids":
		return fmt.Sprintf(`# %s: deal the shards to the workers (and to the ranks)
dataset = webdataset.WebDataset(urls, workersplitter=webdataset.split_by_worker, nodesplitter=webdataset.split_by_node)`, at)
	case "datasets":
		return fmt.Sprintf(`# %s: Hugging Face deals out whole files: as many of them as workers, at least
dataset = dataset.to_iterable_dataset(num_shards=num_workers)  # of a map-style dataset; of a stream: more data files`, at)
	}
	name := words.Last(class)
	if strings.HasPrefix(class, "accelerate.") { // its IterableDatasetShard deals to ranks only, and holds the program's dataset
		name = "your dataset"
	}
	if !ordered {
		return fmt.Sprintf(`# %s: in __iter__ of %s, each worker takes its share of what it goes through, before it is shuffled or skipped:
# every n-th of two different orders are no shares
info = torch.utils.data.get_worker_info()
share = source if info is None else itertools.islice(source, info.id, None, info.num_workers)  `+
			`# source: the files, lines or rows that __iter__ goes through, in one order for all workers
# and share in the place of source`, at, name)
	}
	return fmt.Sprintf(`# %s: in __iter__ of %s, each worker takes its share
info = torch.utils.data.get_worker_info()
share = samples if info is None else itertools.islice(samples, info.id, None, info.num_workers)  # samples: what __iter__ yields now
for sample in share:
    yield sample`, at, name)
}

package wronglen

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// failed is the lookups of samples that failed: the timeline has them. That no
// two samples are alike is not known without all of their digests.
var failed = &collect.Source[lookups]{
	Name:   "failed lookups",
	Tables: []string{"batch_put"},
	Proof:  []string{"exception", "digest"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[lookups] { return finder{} },
}

// lookups are those that failed, by loader.
type lookups map[*timeline.Loader][]lookup

// lookup is a sample that a fetch could not find.
type lookup struct {
	*traces.Exception
	part  string
	pass  *timeline.Pass
	given *traces.Loader // the DataLoader object
	size  int64          // of what was looked into; -1 it is not told
	named bool           // the error names the index that was asked for
	most  int64          // the greatest index of a batch that its loader delivered in any pass; -1 none

	certain bool    // no number that equals the index by chance
	beyond  []int64 // indices that failed, all those that were tried from some bound on; nil: others beyond it could be read
	below   int     // samples that could be read, all below them
}

// finder keeps which indices were asked for.
type finder map[asked]*known

type asked struct {
	part         *traces.Part
	proc         uint32
	loader, pass uint32
}

// known is the batches of a pass with the greatest indices.
type known []batch

type batch struct {
	number uint32
	most   int64 // index
}

// mostBatches of a pass are kept: of so few, those that fail are not all.
const mostBatches = 256

// Add takes the rows of one batch.
func (f finder) Add(b traces.Batch) {
	rows, ok := b.Rows.([]traces.BatchPut)
	if !ok {
		return
	}
	for i := range rows {
		r := &rows[i]
		if len(r.Indices) == 0 {
			continue
		}
		k := asked{b.Part, r.Proc, r.Loader, r.Pass}
		if f[k] == nil {
			f[k] = &known{}
		}
		f[k].add(batch{r.Batch, slices.Max(r.Indices)})
	}
}

func (k *known) add(b batch) {
	if n := len(*k); n > 0 && (*k)[n-1].number == b.number { // a batch of several rows
		(*k)[n-1].most = max((*k)[n-1].most, b.most)
		return
	}
	if *k = append(*k, b); len(*k) >= 2*mostBatches {
		slices.SortFunc(*k, func(a, b batch) int { return cmp.Or(cmp.Compare(b.most, a.most), cmp.Compare(a.number, b.number)) })
		*k = (*k)[:mostBatches]
	}
}

// read is the greatest index of a batch that was delivered.
func (k known) read(delivered int) (most int64) {
	most = -1
	for _, b := range k {
		if int64(b.number) < int64(delivered) {
			most = max(most, b.most)
		}
	}
	return most
}

// Merge takes over what was collected from other parts.
func (f finder) Merge(other collect.Collector[lookups]) { maps.Copy(f, other.(finder)) }

// Build finds what all fetches raised.
func (f finder) Build(e *collect.Evidence) lookups {
	found := lookups{}
	t := collect.Of(e, timeline.Source)
	for _, p := range t.Processes {
		for i := range p.Raised {
			e := &p.Raised[i]
			if e.Stage != "fetch" || e.Sample < 0 || e.Type != "IndexError" && e.Type != "KeyError" {
				continue
			}
			w := t.Worker(p.Part, p.Proc, e.Loader, e.Pass, e.Worker)
			if w == nil {
				continue
			}
			size, named := names(e)
			l := lookup{Exception: e, part: p.Part.Name, pass: w.Pass, given: w.Pass.DataLoader(), size: size, named: named}
			l.most = f.most(w.Pass.Loader)
			found[w.Pass.Loader] = append(found[w.Pass.Loader], l)
		}
	}
	return found
}

// most is the greatest index of a batch that a loader delivered; -1 there is none.
func (f finder) most(l *timeline.Loader) (most int64) {
	most = -1
	for _, p := range l.Passes {
		if k := f[asked{l.Process.Part, l.Process.Proc, p.Object, p.Recorded}]; k != nil {
			most = max(most, k.read(p.Delivered))
		}
	}
	return most
}

// of a loader on all its ranks.
func (f lookups) of(ranks timeline.Ranks) (all []lookup) {
	for _, l := range ranks {
		all = append(all, f[l]...)
	}
	return all
}

const (
	enoughBelow  = 20 // samples must have been read, or that none of them is beyond is chance
	enoughBeyond = 3  // indices that fail, and none of them that was tried does not: as likely as one in 1,771
)

// surest of some lookups that an index below the length failed; nil: none is
// known to be one.
func surest(all []lookup) (worst *lookup, certainty finding.Certainty) {
	keys := map[int64]bool{} // samples of which a KeyError names the index
	for _, l := range all {
		if l.named && l.Type == "KeyError" {
			keys[l.Sample] = true
		}
	}
	bound(all)
	for i := range all {
		if sure := all[i].sure(len(keys)); sure > certainty {
			worst, certainty = &all[i], sure
		}
	}
	return worst, certainty
}

// bound finds out whether it is the indices from some bound on that fail, whatever
// their errors say: of all that were tried.
func bound(all []lookup) {
	of := map[*timeline.Loader][]*lookup{}
	for i := range all {
		if l := &all[i]; l.within() {
			of[l.pass.Loader] = append(of[l.pass.Loader], l)
		}
	}
	for loader, failed := range of {
		var beyond []int64
		for _, l := range failed {
			beyond = append(beyond, l.Sample)
		}
		slices.Sort(beyond)
		beyond = slices.Compact(beyond)
		below, most := 0, failed[0].most
		for _, p := range loader.Passes {
			below += p.Delivered * int(max(p.DataLoader().BatchSize, 1))
		}
		if most < 0 || most >= beyond[0] || below < enoughBelow {
			continue
		}
		for _, l := range failed {
			l.beyond, l.below = beyond, below
		}
	}
}

// within reports whether the index is one that should be there.
func (l *lookup) within() bool {
	if l.given.Length >= 0 {
		return l.Sample < l.given.Length
	}
	return samplers.AsksForAll(l.given)
}

// sure is how sure it is that the index is what is missing; 0: not at all.
func (l *lookup) sure(keys int) finding.Certainty {
	switch {
	case !l.within(): // the sampler asks for too much: the length is right
		return 0
	case l.named && l.given.Length >= 0 && (l.Type == "IndexError" || keys > 1), len(l.beyond) >= enoughBeyond:
		l.certain = true // a number that is looked up may equal the index by chance, not several
		return finding.Proven
	case l.named, len(l.beyond) > 0 && !l.inTurn():
		return finding.Likely
	}
	return 0
}

// inTurn reports whether the samples were asked for one after another: then any one
// that fails is beyond all those before it.
func (l *lookup) inTurn() bool { return strings.HasSuffix(l.given.Sampler, ".SequentialSampler") }

func (l *lookup) at() string { return timeline.Place(l.pass.Loader.Process.Cwd, l.File, l.Line) }

// finding tells of a sample that is missing.
func (l *lookup) finding(c *detect.Case, certainty finding.Certainty) finding.Finding {
	class, owner := l.given.DatasetClass, l.pass.Loader.Process.Part.Name
	length := "the length that its sampler goes by"
	source := fmt.Sprintf("The length of %s is not in the trace; the sampler %s draws from all indices below a length.",
		class, l.given.Sampler)
	if l.given.Length >= 0 {
		length = "its length of " + words.Number(l.given.Length)
		source = fmt.Sprintf("The loader's dataset, %s, has %d samples; its sampler is %s.", class, l.given.Length, l.given.Sampler)
	}
	text := fmt.Sprintf("In pass %d the loader asked for sample %d, and the fetch raised %s: %s, at %s in %s.",
		l.pass.Number, l.Sample, l.Type, l.Message, l.at(), l.Func)
	if l.size >= 0 {
		text += fmt.Sprintf(" There are %d.", l.size)
	}
	if len(l.beyond) > 0 {
		text += fmt.Sprintf(" The samples that were delivered, about %s, are all of smaller indices than those that failed: %s.",
			words.Number(int64(l.below)), failing(l.beyond))
	}
	return finding.Finding{
		Certainty: certainty,
		Title:     fmt.Sprintf("%s has no sample %d, in spite of %s: %s", class, l.Sample, length, l.Type),
		Evidence: []finding.Evidence{
			{Text: text, Refs: []finding.Ref{{Part: l.part, Table: "exception", Seq: l.Seq}}},
			{Text: source, Refs: []finding.Ref{{Part: owner, Table: "loader", Seq: l.given.Seq}}},
		},
		Cost:   l.cost(),
		Fix:    l.fix(),
		Verify: "Record again: " + c.RecordAgain() + " and see that each pass comes to its end.",
		Facts:  l,
	}
}

// cost: a program may pass over the error, and go on with the next batch.
func (l *lookup) cost() string {
	if l.pass.WentOn {
		return fmt.Sprintf("pass %d brought %s, and in place of each with such a sample an error: what else is in it is not trained on either",
			l.pass.Number, words.Count(l.pass.Delivered, "batch"))
	}
	return fmt.Sprintf("pass %d brought %s and then the error; in a shuffled order it comes at another time in each run",
		l.pass.Number, words.Count(l.pass.Delivered, "batch"))
}

// failing is indices, the first ones of many.
func failing(indices []int64) string {
	var list []string
	for _, i := range indices[:min(len(indices), 6)] {
		list = append(list, fmt.Sprint(i))
	}
	if len(indices) > 6 {
		list = append(list, "...")
	}
	return strings.Join(list, ", ")
}

func (l *lookup) fix() string {
	class := l.given.DatasetClass
	inside := "in " + class
	if strings.HasPrefix(class, "torch.") {
		inside = "in the dataset inside of " + class[strings.LastIndexByte(class, '.')+1:]
	}
	if strings.HasSuffix(class, ".Subset") {
		inside += " (or, if that is right: among the indices that Subset was given)"
	}
	if l.Type == "KeyError" && l.named {
		return fmt.Sprintf(`# %s, read at %s: count what there is, and number it without gaps
def __init__(self, ...):
    self.keys = sorted(self.items)

def __len__(self):
    return len(self.keys)

def __getitem__(self, index):
    item = self.items[self.keys[index]]`, inside, l.at())
	}
	size := "as many as there are"
	if l.size >= 0 {
		size = words.Number(l.size)
	}
	return fmt.Sprintf(`# %s: the length of what __getitem__ reads at %s, not one from a header or another list
def __len__(self):
    return len(self.items)  # %s`, inside, l.at(), size)
}

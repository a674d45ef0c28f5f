package wronglen

import (
	"fmt"
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
	Name:  "failed lookups",
	Proof: []string{"exception", "digest"},
	Uses:  []collect.Any{timeline.Source},
	New:   func() collect.Collector[lookups] { return finder{} },
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
}

// finder reads no rows of its own.
type finder struct{}

// Add has nothing to read.
func (finder) Add(traces.Batch) {}

// Merge has nothing to merge.
func (finder) Merge(collect.Collector[lookups]) {}

// Build finds what all fetches raised.
func (finder) Build(e *collect.Evidence) lookups {
	f := lookups{}
	t := collect.Of(e, timeline.Source)
	for _, p := range t.Processes {
		for i := range p.Raised {
			e := &p.Raised[i]
			if e.Stage != "fetch" || e.Sample < 0 || e.Type != "IndexError" && e.Type != "KeyError" {
				continue
			}
			if w := t.Worker(p.Part, p.Proc, e.Loader, e.Pass, e.Worker); w != nil {
				size, named := names(e)
				f[w.Pass.Loader] = append(f[w.Pass.Loader], lookup{e, p.Part.Name, w.Pass, w.Pass.DataLoader(), size, named})
			}
		}
	}
	return f
}

// of a loader on all its ranks.
func (f lookups) of(ranks timeline.Ranks) (all []lookup) {
	for _, l := range ranks {
		all = append(all, f[l]...)
	}
	return all
}

// surest of some lookups that an index below the length failed; nil: none is
// known to be one.
func surest(all []lookup) (worst *lookup, certainty finding.Certainty) {
	keys := map[int64]bool{} // samples of which a KeyError names the index
	for _, l := range all {
		if l.named && l.Type == "KeyError" {
			keys[l.Sample] = true
		}
	}
	for i := range all {
		if sure := all[i].sure(len(keys)); sure > certainty {
			worst, certainty = &all[i], sure
		}
	}
	return worst, certainty
}

// sure is how sure it is that the index is what is missing; 0: not at all.
func (l *lookup) sure(keys int) finding.Certainty {
	switch length := l.given.Length; {
	case !l.named:
		return 0
	case length >= 0 && l.Sample >= length: // the sampler asks for too much: the length is right
		return 0
	case length < 0 && !samplers.AsksForAll(l.given):
		return 0
	case length < 0, l.Type == "KeyError" && keys < 2: // a number that is looked up may equal the index by chance
		return finding.Likely
	}
	return finding.Proven
}

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
	return finding.Finding{
		Certainty: certainty,
		Title:     fmt.Sprintf("%s has no sample %d, in spite of %s: %s", class, l.Sample, length, l.Type),
		Evidence: []finding.Evidence{
			{Text: text, Refs: []finding.Ref{{Part: l.part, Table: "exception", Seq: l.Seq}}},
			{Text: source, Refs: []finding.Ref{{Part: owner, Table: "loader", Seq: l.given.Seq}}},
		},
		Cost: fmt.Sprintf("pass %d brought %d batches and then the error; in a shuffled order it comes at another time in each run",
			l.pass.Number, l.pass.Delivered),
		Fix:       l.fix(),
		Verify:    "Record again: " + c.RecordAgain() + " and see that each pass comes to its end.",
		NotABugIf: "the lookup that failed is another one, for a number that is equal to the index by chance.",
	}
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
	if l.Type == "KeyError" {
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

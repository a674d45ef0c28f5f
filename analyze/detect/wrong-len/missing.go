package wronglen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// missing is a sample that a fetch could not find.
type missing struct {
	*traces.Exception
	part  string
	pass  *timeline.Pass
	given object
	size  int64 // of what was looked into; -1 it is not told
	named bool  // the error names the index that was asked for
}

type object = traces.Loader

// missingOf is what all fetches raised, by loader.
func missingOf(t *timeline.Timeline) map[*timeline.Loader][]missing {
	found := map[*timeline.Loader][]missing{}
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
			m := missing{Exception: e, part: p.Part.Name, pass: w.Pass, size: -1}
			m.size, m.named = names(e)
			l := w.Pass.Loader
			m.given = *l.First()
			for _, o := range l.Objects {
				if o.Loader == w.Pass.Object {
					m.given = o
				}
			}
			found[l] = append(found[l], m)
		}
	}
	return found
}

// absent looks for an index below the length that does not exist.
func (v *verdict) absent() {
	keys := map[int64]bool{} // samples of which a KeyError names the index
	for _, m := range v.missing {
		if m.named && m.Type == "KeyError" {
			keys[m.Sample] = true
		}
	}
	for i := range v.missing {
		m := &v.missing[i]
		sure := finding.Certainty(0)
		switch {
		case !m.named:
		case m.given.Length >= 0 && m.Sample >= m.given.Length: // the sampler asks for too much: the length is right
		case m.given.Length < 0 && !slices.Contains(whole, m.given.Sampler):
		case m.given.Length < 0, m.Type == "KeyError" && len(keys) < 2: // a number that is looked up may equal the index by chance
			sure = finding.Likely
		default:
			sure = finding.Proven
		}
		if sure > v.certainty {
			v.certainty, v.worst = sure, m
		}
	}
}

// whole are torch's samplers that draw from all indices below the length of
// what they were made for, which as a rule is the loader's dataset.
var whole = []string{"torch.utils.data.sampler.RandomSampler", "torch.utils.data.sampler.SequentialSampler", "torch.utils.data.distributed.DistributedSampler"}

func (v *verdict) at(m *missing) string {
	return timeline.Place(m.pass.Loader.Process.Cwd, m.File, m.Line)
}

// absentFinding tells of a sample that is missing.
func (v *verdict) absentFinding() finding.Finding {
	m := v.worst
	f := v.group.Finding(v.Timeline, id, dp)
	f.Certainty = v.certainty
	length := "the length that its sampler goes by"
	if m.given.Length >= 0 {
		length = "its length of " + words.Number(m.given.Length)
	}
	f.Title = fmt.Sprintf("%s has no sample %d, in spite of %s: %s", m.given.DatasetClass, m.Sample, length, m.Type)
	text := fmt.Sprintf("In pass %d the loader asked for sample %d, and the fetch raised %s: %s, at %s in %s.", m.pass.Number, m.Sample, m.Type, m.Message, v.at(m), m.Func)
	if m.size >= 0 {
		text += fmt.Sprintf(" There are %d.", m.size)
	}
	f.Evidence = []finding.Evidence{{Text: text, Refs: []finding.Ref{{Part: m.part, Table: "exception", Seq: m.Seq}}}}
	owner := m.pass.Loader.Process.Part.Name
	text = fmt.Sprintf("The loader's dataset, %s, has %d samples; its sampler is %s.", m.given.DatasetClass, m.given.Length, m.given.Sampler)
	if m.given.Length < 0 {
		text = fmt.Sprintf("The length of %s is not in the trace; the sampler %s draws from all indices below a length.", m.given.DatasetClass, m.given.Sampler)
	}
	f.Evidence = append(f.Evidence, finding.Evidence{Text: text, Refs: []finding.Ref{{Part: owner, Table: "loader", Seq: m.given.Seq}}})
	f.Cost = fmt.Sprintf("pass %d brought %d batches and then the error; in a shuffled order it comes at another time in each run", m.pass.Number, m.pass.Delivered)
	f.Fix = v.fix()
	f.Verify = strings.Replace(f.Verify, "see that the report lists "+id+" as clean for this loader.", "see that each pass comes to its end.", 1)
	f.NotABugIf = "the lookup that failed is another one, for a number that is equal to the index by chance."
	return f
}

func (v *verdict) fix() string {
	m := v.worst
	inside := "in " + m.given.DatasetClass
	if strings.HasPrefix(m.given.DatasetClass, "torch.") {
		inside = "in the dataset inside of " + m.given.DatasetClass[strings.LastIndexByte(m.given.DatasetClass, '.')+1:]
	}
	if strings.HasSuffix(m.given.DatasetClass, ".Subset") {
		inside += " (or, if that is right: among the indices that Subset was given)"
	}
	if m.Type == "KeyError" {
		return fmt.Sprintf(`# %s, read at %s: count what there is, and number it without gaps
def __init__(self, ...):
    self.keys = sorted(self.items)

def __len__(self):
    return len(self.keys)

def __getitem__(self, index):
    item = self.items[self.keys[index]]`, inside, v.at(m))
	}
	return fmt.Sprintf(`# %s: the length of what __getitem__ reads at %s, not one from a header or another list
def __len__(self):
    return len(self.items)  # %s`, inside, v.at(m), v.real())
}

func (v *verdict) real() string {
	if v.worst.size >= 0 {
		return words.Number(v.worst.size)
	}
	return "as many as there are"
}

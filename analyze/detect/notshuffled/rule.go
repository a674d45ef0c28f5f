// Package notshuffled is the rule not-shuffled: a training goes through its
// samples from the first to the last, in every pass.
// docs/rules/not-shuffled.md explains it.
package notshuffled

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "not-shuffled",
	DP:      "DP14",
	Title:   "A training walks through its samples 0, 1, 2, ... in every pass",
	Sources: []collect.Any{orders.Source, values.Source},
	Excuses: excuses,
	Judge:   judge,
}

// excuses are programs in which that order is right. Batches that are overfitted,
// windows of a series, labels that are mixed and samples that change are no
// findings to begin with.
var excuses = []detect.Excuse{
	{
		Text:     "the order of the samples means something (a time series, a curriculum).",
		Excluded: func(*detect.Case, *finding.Finding) bool { return false },
	},
	{
		Text: "the dataset was shuffled when it was written, or the list of its files when that was made.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			w, ok := f.Facts.(*walk)
			return ok && w.labels.sorted()
		},
	},
}

const (
	// few is how many batches are a look at whether a model can overfit, which
	// wants the same ones again: the example of Lightning's documentation of
	// Trainer(overfit_batches=10).
	few = 10
	// enough samples that were the same in two passes: an index stands for one.
	enough = 8
)

func judge(c *detect.Case) detect.Verdict {
	list := detect.Of(c, orders.Source).Of(c.Loaders)
	w := find(c, list)
	doubt := ""
	if w.training != nil && w.changed == 0 {
		if doubt = w.doubt(); doubt == "" {
			reason := fmt.Sprintf("%d passes of %d samples, each from the first to the last", len(w.training), w.training[0].Samples)
			return detect.Found(reason, w.finding(c, finding.Likely))
		}
	}
	if unfit := orders.Unfit(list); unfit != "" {
		return detect.NotApplicable(unfit)
	}
	nothing, n := orders.Nothing(list)
	switch {
	case w.changed > 0:
		return detect.CannotTell("in order, but what is at an index changes between the passes")
	case doubt != "":
		return detect.CannotTell(doubt).Noting(w.finding(c, finding.Note))
	case nothing != "":
		return detect.CannotTell(nothing)
	}
	if why := open(list); why != "" {
		return detect.CannotTell(why)
	}
	return detect.Clean(fmt.Sprintf("%d passes, not in the order 0, 1, 2, ...", n))
}

// walk is the trainings that walk through their samples. One is shown: the
// longest.
type walk struct {
	training []*orders.Pass
	ranks    []int         // of all of them
	same     []values.Pair // samples that came twice with the same content
	changed  int           // with another, in all of them
	labels   labels
	windows  windows
}

// find the trainings that walk through their samples, on ranks that do nothing else.
func find(c *detect.Case, list []*orders.Loader) *walk {
	w := &walk{}
	contents := detect.Of(c, values.Source)
	for _, o := range list {
		if o.Iterable() || o.Odd > 0 || slices.ContainsFunc(o.Trainings, strays) {
			continue
		}
		for _, training := range o.Trainings {
			if len(training) < 2 || slices.ContainsFunc(training, func(p *orders.Pass) bool { return p.Role != timeline.Train }) {
				continue
			}
			var lists [][]values.Sample
			for _, p := range training {
				lists = append(lists, contents.Samples(p.Pass))
			}
			same, changed := values.CompareByIndex(lists...)
			w.ranks = append(w.ranks, o.Rank())
			w.changed += len(changed)
			if len(training) > len(w.training) {
				w.training, w.same, w.labels, w.windows = training, same, labelsOf(lists[0], step(training[0])), windowsOf(lists[0])
			}
		}
	}
	return w
}

// strays reports whether a pass of a training does not go from the first sample
// to the last, by a sampler that does nothing else. A pass that the program
// breaks off may be a look at a few batches.
func strays(training []*orders.Pass) bool {
	return slices.ContainsFunc(training, func(p *orders.Pass) bool {
		return !p.All || !(p.Promise == samplers.Sequential && p.Straight() || shares(p))
	})
}

// shares reports whether a pass goes through the rank's share of the samples from
// the first to the last: DistributedSampler(shuffle=False).
func shares(p *orders.Pass) bool {
	return p.Promise == samplers.Shuffles && p.Object.Shuffle == "no" && samplers.SharingOf(p.Object) == samplers.Distributed && p.Climbs()
}

// step from one index of a pass to the next.
func step(p *orders.Pass) int64 {
	if head := p.Sequence.Head; len(head) > 1 {
		return head[1] - head[0]
	}
	return 1
}

// doubt says why the order may be as it is meant to be, or "".
func (w *walk) doubt() string {
	switch {
	case w.training[0].Batches <= few:
		return fmt.Sprintf("in order, but %d batches or fewer a pass are overfitted on purpose", few)
	case ready(w.training[0]):
		return "in order, but it is batches that the dataset hands out (batch_size=None)"
	case w.windows.series():
		return "in order, but the samples are windows of a series, which may be meant to come one after another"
	case w.labels.mixed():
		return "in order, but the labels come as mixed as if they had been shuffled before"
	case len(w.same) < enough:
		return "in order, but whether an index is the same sample in each pass is not known"
	}
	return ""
}

// ready reports whether the dataset hands out batches, which the order leaves as
// they are: the parts of a text, with a state that is carried from one to the
// next.
func ready(p *orders.Pass) bool { return p.Object.Batched == "no" }

// open says why the order of passes that do not all walk through their samples in
// one training may be no bug, or "" if none walks.
func open(list []*orders.Loader) string {
	own, told, straight, broken, unknown := "", "", false, false, false
	for _, o := range list {
		for _, p := range slices.Concat(o.Trainings...) {
			switch {
			case p.Promise == samplers.Own:
				own = samplers.Class(p.Object)
			case p.Promise == samplers.Shuffles && !p.Shuffled():
				told = samplers.Class(p.Object)
			case p.Straight():
				straight, broken, unknown = true, broken || !p.All, unknown || p.Role != timeline.Train
			}
		}
	}
	switch {
	case own != "":
		return own + ": not a sampler of torch's, so any order may be meant"
	case straight && broken:
		return "in order, but broken off in each pass"
	case straight && unknown:
		return "in order, but no optimizer stepped in these passes"
	case told != "":
		return "not shuffled, as " + told + " must have been told"
	}
	return ""
}

func (w *walk) finding(c *detect.Case, certainty finding.Certainty) finding.Finding {
	p := w.training[0]
	samples, passes := words.Number(int64(p.Samples)), len(w.training)
	f := finding.Finding{Certainty: certainty, Facts: w}
	f.Title = fmt.Sprintf("The training walks through its %s samples %s in each of %d passes%s",
		samples, head(p), passes, orders.OnRanks(c.Loaders, w.ranks))
	f.Evidence = []finding.Evidence{{Refs: orders.Begins(w.training), Text: fmt.Sprintf(
		"In each of %d passes %s asked for the samples 0 to %d, one after another, in %d batches.",
		passes, samplers.Class(p.Object), p.Samples-1, p.Batches)}}
	if shares(p) {
		f.Evidence[0].Text = fmt.Sprintf("In each of %d passes %s with shuffle=False asked for the samples %s, in %d batches.",
			passes, samplers.Class(p.Object), head(p), p.Batches)
	}
	if len(w.same) > 0 {
		part, first := p.Loader.Process.Part.Name, w.same[0]
		f.Evidence = append(f.Evidence, finding.Evidence{
			Refs: []finding.Ref{{Part: part, Table: "digest", Seq: first.First.Seq}, {Part: part, Table: "digest", Seq: first.Again.Seq}},
			Text: fmt.Sprintf("%s whose contents were compared were the same in a later pass; none had changed.",
				words.Upper(words.Count(len(w.same), "sample"))),
		})
	}
	if w.labels.tell() {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: w.labels.text()})
	}
	if w.windows.series() {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: w.windows.text()})
	}
	f.Cost = fmt.Sprintf("%d epochs of the same %d batches, one after another", passes, p.Batches)
	if !ready(p) {
		f.Cost += ": samples that lie side by side in the dataset are always in one batch"
	}
	f.Fix = fmt.Sprintf("# %s\nDataLoader(..., shuffle=True)", p.Loader.At())
	if shares(p) {
		f.Fix = fmt.Sprintf(`# %s
sampler = torch.utils.data.DistributedSampler(dataset, shuffle=True)
# before each pass
sampler.set_epoch(epoch)`, p.Loader.At())
	}
	return f
}

// head is the first indices of a pass.
func head(p *orders.Pass) (text string) {
	for _, i := range p.Sequence.Head[:min(3, len(p.Sequence.Head))] {
		text += fmt.Sprint(i, ", ")
	}
	return text + "..."
}

// Package dropped is the rule samples-dropped: each worker drops its own last,
// incomplete batch, or a sampler leaves samples out.
// docs/rules/samples-dropped.md explains it.
package dropped

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/deliveries"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	Title:   "drop_last drops samples in every worker",
	Sources: []collect.Any{values.Source, deliveries.Source},
	Judge:   detect.Adapt(judge),
}

const id = "samples-dropped"

var tables = append(slices.Clone(deliveries.Tables), "leftover")

// thousandth of a pass is what may be dropped before it is more than a note.
const thousandth = 1000

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	c, d := collect.Of(e, values.Source), collect.Of(e, deliveries.Source)
	left, fetched := c.Leftovers(t), d.Fetches(t)
	for _, g := range deliveries.Groups(t) {
		v := &verdict{Timeline: t, group: g, c: c, left: left, fetched: fetched}
		v.look()
		if v.worst != nil {
			findings = append(findings, v.finding())
		}
		checks = append(checks, v.check())
	}
	return findings, checks
}

// lost is what one pass lost.
type lost struct {
	pass    *timeline.Pass
	object  *traces.Loader
	workers []*timeline.WorkerPass // that dropped any
	dropped int
	got     int // samples that were fetched
	sampler int // samples that a distributed sampler leaves out
	sure    finding.Certainty
}

// batches that could have been made of what was dropped.
func (l *lost) batches() int { return l.dropped / int(l.object.BatchSize) }

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	group   *deliveries.Group
	c       *values.Contents
	left    map[*timeline.WorkerPass]values.Leftover
	fetched map[*timeline.WorkerPass]*deliveries.Fetched

	worst   *lost
	losing  int  // passes that lost as surely
	judged  int  // passes that came to their end
	keeps   bool // no drop_last
	sampled bool // a sampler makes the batches: it drops one at most
	unknown bool // an older hook
}

func (v *verdict) look() {
	for _, l := range v.group.Loaders {
		for _, p := range l.Passes {
			o := p.DataLoader()
			switch {
			case !p.Exhausted:
				continue
			case o.SamplerReplicas > 0 && o.SamplerTotal > 0 && o.SamplerTotal < o.Length && o.Length-o.SamplerTotal < o.SamplerReplicas:
				v.add(&lost{pass: p, object: o, sampler: int(o.Length - o.SamplerTotal), sure: finding.Note})
			case !o.DropLast || o.BatchSize <= 0:
				v.keeps = true
			case !o.Iterable:
				v.sampled = true
			case !values.Recorded(o):
				v.unknown = true
			default:
				v.pass(p, o)
			}
			v.judged++
		}
	}
}

// pass of an IterableDataset: each of its workers drops what it cannot make a
// batch of.
func (v *verdict) pass(p *timeline.Pass, o *traces.Loader) {
	one := &lost{pass: p, object: o, sure: finding.Note}
	for _, w := range p.Workers {
		if n := v.left[w].Samples; n > 0 {
			one.workers = append(one.workers, w)
			one.dropped += n
		}
		if f := v.fetched[w]; f != nil {
			one.got += f.Samples
		}
	}
	if one.dropped == 0 {
		return
	}
	if len(one.workers) > 1 && one.batches() > 0 && thousandth*one.dropped >= one.got {
		one.sure = finding.Proven
	}
	v.add(one)
}

// add keeps the pass that lost most, of the surest.
func (v *verdict) add(one *lost) {
	switch w := v.worst; {
	case w == nil || one.sure > w.sure:
		v.worst, v.losing = one, 1
	case one.sure < w.sure:
	default:
		v.losing++
		if one.dropped > w.dropped {
			v.worst = one
		}
	}
}

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.group.ID, Status: finding.CannotTell}
	gap := v.group.Gap(v.Timeline, tables)
	switch {
	case v.worst != nil && v.worst.sure > finding.Note:
		c.Status, c.Reason = finding.Found, fmt.Sprintf("%s dropped in pass %d", words.Count(v.worst.dropped, "sample"), v.worst.pass.Number)
	case gap != "":
		c.Reason = gap
	case v.unknown:
		c.Reason = "what workers drop is not in the trace"
	case v.judged == 0:
		c.Reason = "no pass was used to its end"
	case v.worst != nil:
		c.Status, c.Reason = finding.Clean, "no more than a note: less than one batch, or than a thousandth"
	case v.sampled:
		c.Status, c.Reason = finding.Clean, "drop_last drops the sampler's one last batch at most"
	case v.keeps:
		c.Status, c.Reason = finding.Clean, "drop_last is not set"
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%s, no worker dropped any sample", words.Count(v.judged, "pass"))
	}
	return c
}

func (v *verdict) finding() finding.Finding {
	w := v.worst
	f := v.group.Finding(v.Timeline, id, "")
	f.Certainty = w.sure
	if w.sampler > 0 {
		v.sampler(&f)
		return f
	}
	part := w.pass.Loader.Process.Part.Name
	var counts []string
	var refs []finding.Ref
	for _, worker := range w.workers {
		left := v.left[worker]
		refs = append(refs, finding.Ref{Part: part, Table: "leftover", Seq: left.Seq})
		counts = append(counts, fmt.Sprintf("worker %d %d", worker.Number, left.Samples))
		if worker.Number < 0 {
			counts[len(counts)-1] = fmt.Sprintf("the main process %d", left.Samples)
		}
	}
	f.Title = fmt.Sprintf("drop_last drops %d of %d samples in pass %d, in %s of its own each", w.dropped, w.dropped+w.got, w.pass.Number, batchIn(w))
	f.Evidence = []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("In pass %d the dataset had come to its end with samples that made no batch of %d: %s. They were dropped.", w.pass.Number, w.object.BatchSize, words.List(counts))}}
	if w.sure > finding.Note {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("Together these are %s of %d and %d more samples.", words.Count(w.batches(), "batch"), w.object.BatchSize, w.dropped%int(w.object.BatchSize))})
	}
	f.Cost = fmt.Sprintf("%s (%.1f %% of the pass) that were read and never delivered, in %s", words.Count(w.dropped, "sample"), 100*float64(w.dropped)/float64(w.dropped+w.got), words.Count(v.losing, "pass"))
	f.Fix = v.fix()
	f.NotABugIf = "the samples at the end of each worker's share are not wanted."
	return f
}

func batchIn(w *lost) string {
	if len(w.workers) == 1 {
		return "a last batch"
	}
	return fmt.Sprintf("%d workers with a last batch", len(w.workers))
}

func (v *verdict) fix() string {
	w := v.worst
	if w.sure == finding.Note {
		return fmt.Sprintf("# %s: to keep the last samples\nDataLoader(..., drop_last=False)", w.pass.Loader.At())
	}
	return fmt.Sprintf(`# %s: keep each worker's last batch, which has fewer samples
DataLoader(..., drop_last=False)
# or, if every batch has to have %d: one worker has one last batch
DataLoader(..., num_workers=1, drop_last=True)`, w.pass.Loader.At(), w.object.BatchSize)
}

// sampler is the note on a distributed sampler with drop_last.
func (v *verdict) sampler(f *finding.Finding) {
	w := v.worst
	o := w.object
	f.Title = fmt.Sprintf("The sampler leaves out %d of %s samples in each pass, to give %d ranks as many each", w.sampler, words.Number(o.Length), o.SamplerReplicas)
	f.Evidence = []finding.Evidence{{Refs: []finding.Ref{{Part: w.pass.Loader.Process.Part.Name, Table: "loader", Seq: o.Seq}},
		Text: fmt.Sprintf("%s deals out %s samples; the dataset has %s.", o.Sampler, words.Number(o.SamplerTotal), words.Number(o.Length))}}
	f.Cost = fmt.Sprintf("%s a pass, others in each pass if it shuffles", words.Count(w.sampler, "sample"))
	f.Fix = fmt.Sprintf("# %s: repeat some samples instead\nDistributedSampler(dataset, drop_last=False)", w.pass.Loader.At())
	f.NotABugIf = "a few samples less do not matter."
}

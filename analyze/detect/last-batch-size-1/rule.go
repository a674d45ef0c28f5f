// Package one is the rule last-batch-size-1: a training batch of one sample,
// left over at the end of a pass. docs/rules/last-batch-size-1.md explains it.
package one

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/deliveries"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	DP:      dp,
	Title:   "A training batch of one sample",
	Sources: []collect.Any{deliveries.Source, values.Source},
	Judge:   detect.Adapt(judge),
}

const (
	id = "last-batch-size-1"
	dp = "DP8"
)

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	d, c := collect.Of(e, deliveries.Source), collect.Of(e, values.Source)
	fetches := d.Fetches(t)
	for _, g := range deliveries.Groups(t) {
		v := &verdict{Timeline: t, group: g, d: d, fetches: fetches}
		for _, l := range g.Loaders {
			for _, pass := range l.Passes {
				if !pass.Abandoned {
					v.look(pass)
					v.empty = v.empty || collates(objectOf(pass)) && slices.ContainsFunc(c.Samples(t, pass), func(s values.Sample) bool { return s.Empty() })
				}
			}
		}
		if v.certainty > 0 {
			findings = append(findings, v.finding())
		}
		checks = append(checks, v.check())
	}
	return findings, checks
}

// Where a batch of one sample came from.
type origin string

const (
	left  origin = "left"  // over when a pass, or a worker's share of it, ended
	short origin = "fetch" // the fetch brought one of several samples that were asked for
	asked origin = "asked" // the batch sampler made it in the middle of a pass
)

// lone is a batch of one sample that reached the training loop.
type lone struct {
	pass   *timeline.Pass
	worker int // -2 not known
	deliveries.Singleton
	table  string // of One.Seq
	part   string // where that row is
	origin origin
	of     int // samples that were asked for; 0 not known
	use    deliveries.Use
	sure   finding.Certainty
}

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	group   *deliveries.Group
	d       *deliveries.Deliveries
	fetches map[*timeline.WorkerPass]*deliveries.Fetched

	certainty finding.Certainty
	lone      []lone // of all certainties
	passed    int    // batches of one that the loop did not train on
	unseen    int    // and those of which that is not known
	alone     int    // passes of one batch
	custom    int    // batches of one by a batch sampler of the user's own, of many sizes
	ended     int    // passes that came to their end
	batches   int    // seen
	least     int    // samples in the smallest of them
	hidden    bool   // of some batches it is not known how many samples they have
	empty     bool   // samples with nothing in them reach a collate function of the program's own
}

// collates reports whether a function of the program's own makes the batches. What
// it leaves out (None, in place of an image that could not be read) is not seen.
func collates(o *object) bool { return o.Collate != "" && !strings.HasPrefix(o.Collate, "torch.") }

// batchSampler is torch's own: it makes batches of one size, but for the last.
const batchSampler = "torch.utils.data.sampler.BatchSampler"

// uniform reports whether all batches of a loader but the last are of one size,
// which is more than one: as far as the sizes were asked for, or (own) as far
// as can be seen of a batch sampler of the user's own.
func uniform(o *object, asked *deliveries.Sizes) (is, own bool) {
	switch {
	case o.BatchSize > 1:
		return true, false
	case o.BatchSize > 0 || o.BatchSampler == "":
		return false, false
	}
	return asked.Most > 1 && asked.Others == 0 && asked.OnesInAll == 1 && asked.Ones[0].Batch == asked.Last, o.BatchSampler != batchSampler
}

// look at one pass.
func (v *verdict) look(pass *timeline.Pass) {
	p, o := v.d.Of(pass), objectOf(pass)
	if pass.Role == timeline.Eval || p.Delivered == 0 {
		return
	}
	if pass.Exhausted {
		v.ended++
	}
	v.batches += p.Delivered
	v.size(&p.Asked)
	if p.Delivered == 1 { // there is nothing but the one sample
		v.alone++
		return
	}
	even, own := uniform(o, &p.Asked)
	for _, one := range p.Asked.Ones {
		if !p.Reached(one.Batch) {
			continue
		}
		if !even {
			if o.BatchSize != 1 {
				v.custom++
			}
			continue
		}
		l := lone{pass: pass, worker: -2, Singleton: one, table: "batch_put", part: pass.Loader.Process.Part.Name, origin: left}
		if one.Batch != p.Asked.Last {
			l.origin = asked
		}
		l.sure = v.sure(pass, p, one.Batch, own || l.origin == asked)
		v.add(l, p)
	}
	for _, w := range pass.Workers {
		f := v.fetches[w]
		if f == nil {
			v.hidden = v.hidden || p.Asked.Batches == 0
			continue
		}
		v.fetched(pass, p, w, f)
	}
}

// fetched looks at what one worker fetched: of an IterableDataset nothing else
// is known, and of others it may be less than was asked for.
func (v *verdict) fetched(pass *timeline.Pass, p *deliveries.Pass, w *timeline.WorkerPass, f *deliveries.Fetched) {
	o := objectOf(pass)
	if o.BatchSize <= 1 && (o.BatchSampler == "" || p.Asked.Most <= 1) {
		return
	}
	counted := p.Asked.Batches > 0 && !p.Keyed
	if counted && p.Asked.OnesInAll > len(p.Asked.Ones) {
		return
	}
	if !counted {
		v.size(&f.Sizes)
	}
	for _, one := range f.Ones {
		if !p.Reached(one.Batch) || p.AskedForOne(one.Batch) {
			continue
		}
		l := lone{pass: pass, worker: w.Number, Singleton: one, table: "batch_fetch", part: w.Process.Part.Name, origin: left}
		unlike := false
		switch {
		case counted && v.most(pass) < 2: // what is fetched is no list: how many samples it has is not known
			continue
		case counted:
			l.origin, l.of = short, p.Asked.Most
		case one.Batch != f.Last:
			l.origin, unlike = short, true
		}
		l.sure = v.sure(pass, p, one.Batch, unlike)
		v.add(l, p)
	}
}

// most samples that any worker fetched for a batch of a pass.
func (v *verdict) most(pass *timeline.Pass) int {
	n := 0
	for _, w := range pass.Workers {
		if f := v.fetches[w]; f != nil {
			n = max(n, f.Most)
		}
	}
	return n
}

func (v *verdict) add(l lone, p *deliveries.Pass) {
	l.use = p.Use(l.Batch)
	if l.sure == 0 {
		if l.use == deliveries.Passed {
			v.passed++
		}
		return
	}
	v.certainty = max(v.certainty, l.sure)
	v.lone = append(v.lone, l)
}

// sure is how sure it is that the model was trained on a batch of one sample,
// and that nobody wanted it; 0: the loop has passed over it.
func (v *verdict) sure(pass *timeline.Pass, p *deliveries.Pass, batch uint32, doubtful bool) finding.Certainty {
	use := p.Use(batch)
	each := 10*p.Stepped >= 9*(p.Delivered-1) // after each other batch an optimizer stepped
	switch {
	case use == deliveries.Passed && each && p.Stepped > 0:
		return 0
	case use == deliveries.Unseen && refused(pass) != nil:
		return finding.Proven
	case use == deliveries.Unseen:
		v.unseen++
		return 0
	case pass.Role != timeline.Train || pass.Blind || doubtful || use != deliveries.Stepped:
		return finding.Likely
	}
	return finding.Proven
}

func (v *verdict) size(s *deliveries.Sizes) {
	if s.Batches > 0 && (v.least == 0 || s.Least < v.least) {
		v.least = s.Least
	}
}

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.group.ID, Status: finding.CannotTell}
	o := v.group.Loaders[0].First()
	gap := v.group.Gap(v.Timeline, deliveries.Tables)
	switch {
	case v.certainty > finding.Note:
		c.Status, c.Reason = finding.Found, fmt.Sprintf("%s of one sample, of %d", words.Count(len(v.surest()), "batch"), v.batches)
	case gap != "":
		c.Reason = gap
	case v.group.Loaders.Role() == timeline.Eval:
		c.Status, c.Reason = finding.Clean, "an evaluation: nothing is learned from a small batch"
	case o.BatchSize == 1:
		c.Status, c.Reason = finding.Clean, "batch_size=1 is what was asked for"
	case o.BatchSize < 0 && o.BatchSampler == "":
		c.Reason = "batch_size=None: how many samples the dataset puts into a batch is not in the trace"
	case v.custom > 0:
		c.Reason = fmt.Sprintf("%s makes batches of different sizes, %d of one sample", o.BatchSampler, v.custom)
	case v.alone > 0 && v.batches == v.alone:
		c.Reason = "one batch a pass: there is no last one"
	case v.unseen > 0:
		c.Reason = fmt.Sprintf("whether the loop trained on %s of one sample, the last it asked for, is not in the trace", words.Count(v.unseen, "batch"))
	case v.passed > 0:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%s of one sample, which the loop has passed over", words.Count(v.passed, "batch"))
	case v.ended == 0:
		c.Reason = "no pass was used to its end, where the last batch is"
	case v.empty:
		c.Reason = fmt.Sprintf("samples with nothing in them were seen, None or zeros, and how many of them %s leaves out of a batch is not in the trace", o.Collate)
	case v.hidden || v.least == 0:
		c.Reason = "how many samples the batches had is not in the trace"
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%s, the smallest of %s", words.Count(v.batches, "batch"), words.Count(v.least, "sample"))
		if collates(o) {
			c.Reason += ", as they reach " + o.Collate
		}
	}
	return c
}

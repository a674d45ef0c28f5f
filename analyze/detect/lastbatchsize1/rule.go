// Package lastbatchsize1 is the rule last-batch-size-1: a training batch of one sample,
// left over at the end of a pass. docs/rules/last-batch-size-1.md explains it.
package lastbatchsize1

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "last-batch-size-1",
	DP:      "DP8",
	Title:   "A training batch of one sample",
	Sources: []collect.Any{batches.Requested, batches.Delivered, batches.Fetched, values.Source},
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	s := &seen{Case: c}
	for _, pass := range c.Passes() {
		if !pass.Abandoned {
			s.look(pass)
		}
	}
	o := c.First().First()
	switch {
	case s.certainty > 0:
		return detect.Found(fmt.Sprintf("%s of one sample, of %d", words.Count(len(s.surest()), "batch"), s.batches), s.finding())
	case c.Loaders.Role() == timeline.Eval:
		return detect.NotApplicable("an evaluation: nothing is learned from a small batch")
	case o.BatchSize == 1:
		return detect.NotApplicable("batch_size=1 is what was asked for")
	case o.BatchSize < 0 && o.BatchSampler == "":
		return detect.CannotTell("batch_size=None: how many samples the dataset puts into a batch is not in the trace")
	case s.custom > 0:
		return detect.CannotTell(fmt.Sprintf("%s makes batches of different sizes, %d of one sample", o.BatchSampler, s.custom))
	case s.alone > 0 && s.batches == s.alone:
		return detect.CannotTell("one batch a pass: there is no last one")
	case s.unseen > 0:
		return detect.CannotTell(fmt.Sprintf("whether the loop trained on %s of one sample, the last it asked for, is not in the trace",
			words.Count(s.unseen, "batch")))
	}
	return s.verdict(o)
}

// verdict where the loop trained on no batch of one sample that was seen.
func (s *seen) verdict(o *traces.Loader) detect.Verdict {
	switch {
	case s.passed > 0:
		return detect.Clean(fmt.Sprintf("%s of one sample, which the loop has passed over", words.Count(s.passed, "batch")))
	case s.ended == 0:
		return detect.CannotTell("no pass was used to its end, where the last batch is")
	case s.empty:
		return detect.CannotTell(fmt.Sprintf("samples with nothing in them were seen, None or zeros, and how many of them %s leaves out of "+
			"a batch is not in the trace",
			o.Collate))
	case s.hidden || s.least == 0:
		return detect.CannotTell("how many samples the batches had is not in the trace")
	}
	reason := fmt.Sprintf("%s, the smallest of %s", words.Count(s.batches, "batch"), words.Count(s.least, "sample"))
	if collates(o) {
		reason += ", as they reach " + o.Collate
	}
	return detect.Clean(reason)
}

// seen is what was seen of the batches of one loader.
type seen struct {
	*detect.Case

	certainty finding.Certainty // of the surest of lone
	lone      []lone
	passed    int  // batches of one that the loop did not train on
	unseen    int  // and those of which that is not known
	alone     int  // passes of one batch
	custom    int  // batches of one by a batch sampler of the user's own, of many sizes
	ended     int  // passes that came to their end
	batches   int  // seen
	least     int  // samples in the smallest of them
	hidden    bool // of some batches it is not known how many samples they have
	empty     bool // samples with nothing in them reach a collate function of the program's own
}

// origin is where a batch of one sample came from.
type origin string

const (
	left  origin = "left"  // over when a pass, or a worker's share of it, ended
	short origin = "fetch" // the fetch brought one of several samples that were asked for
	asked origin = "asked" // the batch sampler made it in the middle of a pass
)

// lone is a batch of one sample that reached the training loop.
type lone struct {
	batches.Singleton
	pass   pass
	worker int    // -2 not known
	table  string // of Seq
	part   string // where that row is
	origin origin
	of     int // samples that were asked for; 0 not known
	use    batches.Use
	sure   finding.Certainty
}

// pass of the loader, and what is known of its batches.
type pass struct {
	*timeline.Pass
	object    *traces.Loader
	requests  *batches.Requests
	delivered *batches.Deliveries
}

// look at one pass.
func (s *seen) look(t *timeline.Pass) {
	p := pass{t, t.DataLoader(), detect.Of(s.Case, batches.Requested).Of(t), detect.Of(s.Case, batches.Delivered).Of(t)}
	contents := detect.Of(s.Case, values.Source).Samples(t)
	s.empty = s.empty || collates(p.object) && slices.ContainsFunc(contents, func(v values.Sample) bool { return v.Empty() })
	if p.Role == timeline.Eval || p.delivered.Count == 0 {
		return
	}
	if p.Exhausted {
		s.ended++
	}
	s.batches += p.delivered.Count
	s.size(&p.requests.Sizes)
	if p.delivered.Count == 1 { // there is nothing but the one sample
		s.alone++
		return
	}
	s.requested(p)
	fetched := detect.Of(s.Case, batches.Fetched)
	most := 0 // samples that any worker fetched for a batch
	for _, w := range p.Workers {
		most = max(most, fetched.Of(w).Most)
	}
	for _, w := range p.Workers {
		if f := fetched.Of(w); f.Batches > 0 {
			s.fetched(p, w, f, most)
		} else if p.requests.Batches == 0 {
			s.hidden = true
		}
	}
}

// requested looks at the batches of one that the sampler made.
func (s *seen) requested(p pass) {
	even, own := uniform(p.object, &p.requests.Sizes)
	for _, one := range p.requests.Ones {
		switch {
		case !p.delivered.Reached(one.Batch):
		case even:
			l := lone{Singleton: one, pass: p, worker: -2, table: "batch_put", part: p.Loader.Process.Part.Name, origin: left}
			if one.Batch != p.requests.Last {
				l.origin = asked
			}
			s.add(l, own || l.origin == asked)
		case p.object.BatchSize != 1:
			s.custom++
		}
	}
}

// fetched looks at what one worker fetched: of an IterableDataset nothing else
// is known, and of others it may be less than was asked for.
func (s *seen) fetched(p pass, w *timeline.WorkerPass, f *batches.Fetches, most int) {
	q := p.requests
	if p.object.BatchSize <= 1 && (p.object.BatchSampler == "" || q.Most <= 1) {
		return
	}
	counted := q.Batches > 0 && !q.Keyed
	if counted && q.OnesInAll > len(q.Ones) {
		return
	}
	if !counted {
		s.size(&f.Sizes)
	}
	for _, one := range f.Ones {
		if !p.delivered.Reached(one.Batch) || q.OneIn(one.Batch) {
			continue
		}
		l := lone{Singleton: one, pass: p, worker: w.Number, table: "batch_fetch", part: w.Process.Part.Name, origin: left}
		switch {
		case counted && most < 2: // what is fetched is no list: how many samples it has is not known
			continue
		case counted:
			l.origin, l.of = short, q.Most
		case one.Batch != f.Last:
			l.origin = short
		}
		s.add(l, l.origin == short && !counted)
	}
}

// add a batch of one. doubtful: it may be wanted.
func (s *seen) add(l lone, doubtful bool) {
	p, d := l.pass, l.pass.delivered
	l.use = d.Use(l.Batch)
	each := 10*d.Stepped >= 9*(d.Count-1) // after each other batch an optimizer stepped
	switch {
	case l.use == batches.Passed && each && d.Stepped > 0:
		s.passed++ // the loop has passed over it
		return
	case l.use == batches.Unseen && refused(p) != nil:
		l.sure = finding.Proven
	case l.use == batches.Unseen:
		s.unseen++
		return
	case p.Role != timeline.Train || p.Blind || doubtful || l.use != batches.Stepped:
		l.sure = finding.Likely
	default:
		l.sure = finding.Proven
	}
	s.certainty = max(s.certainty, l.sure)
	s.lone = append(s.lone, l)
}

func (s *seen) size(of *batches.Sizes) {
	if of.Batches > 0 && (s.least == 0 || of.Least < s.least) {
		s.least = of.Least
	}
}

// surest is the batches that the finding is as sure of as of any.
func (s *seen) surest() (list []lone) {
	for _, l := range s.lone {
		if l.sure == s.certainty {
			list = append(list, l)
		}
	}
	return list
}

// collates reports whether a function of the program's own makes the batches. What
// it leaves out (None, in place of an image that could not be read) is not seen.
func collates(o *traces.Loader) bool {
	return o.Collate != "" && !strings.HasPrefix(o.Collate, "torch.")
}

// batchSampler is torch's own: it makes batches of one size, but for the last.
const batchSampler = "torch.utils.data.sampler.BatchSampler"

// uniform reports whether all batches of a loader but the last are of one size,
// which is more than one: as far as the sizes were asked for, or (own) as far
// as can be seen of a batch sampler of the user's own.
func uniform(o *traces.Loader, asked *batches.Sizes) (is, own bool) {
	switch {
	case o.BatchSize > 1:
		return true, false
	case o.BatchSize > 0 || o.BatchSampler == "":
		return false, false
	}
	return asked.Most > 1 && asked.Others == 0 && asked.OnesInAll == 1 && asked.Ones[0].Batch == asked.Last, o.BatchSampler != batchSampler
}

// refused is the error of a batch norm that was given one value per channel.
func refused(p pass) *traces.Exception {
	raised := p.Loader.Process.Raised
	for i := range raised {
		e := &raised[i]
		if e.Stage == "exit" && e.Type == "ValueError" && strings.HasPrefix(e.Message, "Expected more than 1 value per channel when training") {
			return e
		}
	}
	return nil
}

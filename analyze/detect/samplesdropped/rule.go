// Package samplesdropped is the rule samples-dropped: each worker drops its own last,
// incomplete batch, or a sampler leaves samples out.
// docs/rules/samples-dropped.md explains it.
package samplesdropped

import (
	"fmt"

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
	ID:      "samples-dropped",
	Title:   "drop_last drops samples in every worker",
	Sources: []collect.Any{batches.Fetched, batches.LeftOver},
	Excuses: excuses,
	Judge:   judge,
}

// thousandth of a pass is what may be dropped before it is more than a note.
const thousandth = 1000

func judge(c *detect.Case) detect.Verdict {
	if n := lookForNothing(c); n != nil {
		return detect.Found(fmt.Sprintf("nothing was delivered in %s", words.Count(n.passes, "pass")), n.finding())
	}
	s := look(c)
	switch w := s.worst; {
	case w != nil && w.sure > finding.Note:
		return detect.Found(fmt.Sprintf("%s dropped in pass %d", words.Count(w.dropped, "sample"), w.pass.Number), s.finding(c))
	case w == nil && !s.drops && s.sampled:
		return detect.NotApplicable("drop_last drops the sampler's one last batch at most")
	case w == nil && !s.drops && s.keeps:
		return detect.NotApplicable("drop_last is not set")
	}
	verdict := s.verdict()
	if s.worst != nil {
		verdict = verdict.Noting(s.finding(c))
	}
	return verdict
}

// verdict where no more than a note was found.
func (s *seen) verdict() detect.Verdict {
	switch {
	case s.unknown:
		return detect.CannotTell("what workers drop is not in the trace")
	case s.ended == 0:
		return detect.CannotTell("no pass was used to its end")
	case s.worst != nil:
		return detect.Found("no more than a note: less than one batch, or than a thousandth")
	}
	return detect.Clean(fmt.Sprintf("%s, no worker dropped any sample", words.Count(s.ended, "pass")))
}

// seen is what the passes of one loader lost.
type seen struct {
	worst  *lost
	losing int // passes that lost as surely
	ended  int // passes that came to their end

	drops   bool // workers drop their last batches
	keeps   bool // no drop_last
	sampled bool // a sampler makes the batches: it drops one at most
	unknown bool // an older hook
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

// look at all passes.
func look(c *detect.Case) *seen {
	s := &seen{}
	for _, p := range c.Passes() {
		o := p.DataLoader()
		if p.Exhausted {
			s.ended++
		}
		switch {
		case leavesOut(o) > 0:
			if p.Exhausted {
				s.add(&lost{pass: p, object: o, sampler: leavesOut(o), sure: finding.Note})
			}
		case !o.DropLast || o.BatchSize <= 0:
			s.keeps = true
		case !o.Iterable:
			s.sampled = true
		default:
			s.drops = true
			if p.Exhausted && values.Recorded(o) {
				s.pass(c, p, o)
			}
			s.unknown = s.unknown || p.Exhausted && !values.Recorded(o)
		}
	}
	return s
}

// leavesOut is how many samples a distributed sampler leaves out to give all
// ranks as many each.
func leavesOut(o *traces.Loader) int {
	if n := o.Length - o.SamplerTotal; o.SamplerReplicas > 0 && o.SamplerTotal > 0 && n > 0 && n < o.SamplerReplicas {
		return int(n)
	}
	return 0
}

// pass of an IterableDataset: each of its workers drops what it cannot make a
// batch of.
func (s *seen) pass(c *detect.Case, p *timeline.Pass, o *traces.Loader) {
	left, fetched := detect.Of(c, batches.LeftOver), detect.Of(c, batches.Fetched)
	one := &lost{pass: p, object: o, sure: finding.Note}
	for _, w := range p.Workers {
		if n := left.Of(w).Samples; n > 0 {
			one.workers = append(one.workers, w)
			one.dropped += n
		}
		one.got += fetched.Of(w).Samples
	}
	if one.dropped == 0 {
		return
	}
	if len(one.workers) > 1 && one.batches() > 0 && thousandth*one.dropped >= one.got {
		one.sure = finding.Proven
	}
	s.add(one)
}

// add keeps the pass that lost most, of the surest.
func (s *seen) add(one *lost) {
	switch w := s.worst; {
	case w == nil || one.sure > w.sure:
		s.worst, s.losing = one, 1
	case one.sure < w.sure:
	default:
		s.losing++
		if one.dropped > w.dropped {
			s.worst = one
		}
	}
}

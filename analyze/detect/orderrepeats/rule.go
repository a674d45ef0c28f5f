// Package orderrepeats is the rule order-repeats: a loader that shuffles goes
// through the samples in the order of an earlier pass.
// docs/rules/order-repeats.md explains it.
package orderrepeats

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/samplers"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "order-repeats",
	DP:      "DP14",
	Title:   "A shuffling loader gives one order in several passes",
	Sources: []collect.Any{orders.Source, values.Source, samples.Source},
	Excuses: excuses,
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	list := detect.Of(c, orders.Source).Of(c.Loaders)
	s := &seen{c: c}
	for _, o := range list {
		if !o.Iterable() {
			s.look(o)
		}
	}
	if s.certainty > finding.Note {
		return detect.Found(fmt.Sprintf("%d of %d passes in the order of an earlier one", len(s.repeats), len(s.training)), s.finding())
	}
	if st := streamOf(c); st != nil {
		return st.verdict()
	}
	if unfit := orders.Unfit(list); unfit != "" {
		return detect.NotApplicable(unfit)
	}
	verdict := s.verdict(orders.Nothing(list))
	if s.certainty == finding.Note {
		verdict = verdict.Noting(s.finding())
	}
	return verdict
}

// seen is what was seen of one loader. One training is shown: the longest of the
// surest.
type seen struct {
	c *detect.Case

	certainty finding.Certainty
	rated     int
	training  []*orders.Pass
	repeats   []orders.Repeat // of the surest kind, and less sure ones of the same training
	ranks     []int           // of all such trainings
	frozen    bool            // sampler-no-set-epoch says it all
	own       string          // the class of a sampler of the program's own that gave one order twice
	straight  bool            // an order that climbs came twice
	renewed   bool            // an order came twice, of other data
}

// look at one rank.
func (s *seen) look(o *orders.Loader) {
	for _, training := range o.Trainings {
		all := orders.RepeatsThat(training, func(r orders.Repeat) bool { return !s.other(r) })
		for _, r := range all {
			if r.First.Promise == samplers.Own {
				s.own = samplers.Class(r.First.Object)
			}
			s.straight = s.straight || !r.Shuffled
		}
		shuffled := orders.Shuffled(all)
		found := slices.DeleteFunc(slices.Clone(shuffled), s.other)
		s.renewed = s.renewed || len(found) < len(shuffled)
		switch {
		case len(found) == 0:
		case o.Frozen(training):
			s.frozen = true
		default:
			s.add(o.Rank(), training, found)
		}
	}
}

// add a training in which orders came again.
func (s *seen) add(rank int, training []*orders.Pass, found []orders.Repeat) {
	slices.SortStableFunc(found, func(a, b orders.Repeat) int { return s.rate(b) - s.rate(a) })
	s.ranks = append(s.ranks, rank)
	if rate := s.rate(found[0]); rate > s.rated || rate == s.rated && len(found) > len(s.repeats) {
		s.rated, s.training, s.repeats = rate, training, found
		s.certainty = finding.Proven
		if rate == 0 {
			s.certainty = finding.Note
		}
	}
}

// other reports whether a repeat is of other data: folds, rollouts, a buffer that was
// filled anew. Where random numbers are drawn, it may be the same data, augmented.
func (s *seen) other(r orders.Repeat) bool {
	return r.Elsewhere || r.OtherData(detect.Of(s.c, values.Source)) && detect.Of(s.c, samples.Source).Fixed(r.First.Loader)
}

// rate a repeated order: 0 for one that is meant, else 1, and 1 more for each
// excuse that it leaves no room for.
func (s *seen) rate(r orders.Repeat) (n int) {
	p, q := r.First, r.Again
	switch {
	case p.Epoch >= 0 && p.Epoch == q.Epoch:
		return 0 // it was told that epoch twice, others in between: a pass done over
	case p.Promise == samplers.Own || q.Promise == samplers.Own:
		return 0 // one order may be what it is for: by length, by difficulty
	}
	n = 1
	for _, excluded := range []func(orders.Repeat) bool{s.sameData, trains, decides, ended} {
		if excluded(r) {
			n++
		}
	}
	return n
}

// verdict where no order came again that says something. nothing: why no orders
// were compared; else n passes were.
func (s *seen) verdict(nothing string, n int) detect.Verdict {
	switch {
	case s.frozen:
		return detect.CannotTell("one order in several passes, because the sampler is not told the epoch (sampler-no-set-epoch)")
	case nothing != "":
		return detect.CannotTell(nothing)
	case s.own != "":
		return detect.CannotTell(s.own + " gives one order in several passes: not a sampler of torch's, so it may be meant to")
	case s.renewed:
		return detect.CannotTell("one order in several passes, but what is at an index changes between them")
	case s.certainty == finding.Note:
		return detect.Found("no more than a note: passes of one epoch number")
	case s.straight:
		return detect.Clean(fmt.Sprintf("%d passes, in an order that is not shuffled", n))
	}
	return detect.Clean(fmt.Sprintf("%d passes, all in different orders", n))
}

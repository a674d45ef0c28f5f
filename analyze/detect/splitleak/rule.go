// Package splitleak is the rule split-leak: samples that a model is evaluated on have
// been trained on. docs/rules/split-leak.md explains it.
package splitleak

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "split-leak",
	Title:   "Samples are evaluated that the model was trained on",
	Sources: []collect.Any{samples.Source, evaluated},
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	v := &verdict{Timeline: c.Timeline, ledger: detect.Of(c, samples.Source), ranks: c.Loaders, evals: detect.Of(c, evaluated)[c.ID()]}
	v.choose()
	if v.worst == nil {
		return v.nothing()
	}
	e, f := v.worst, v.finding()
	switch {
	case f.Certainty > finding.Note:
		return detect.Found(fmt.Sprintf("%s of pass %d were trained on", words.Share(e.leaked, e.samples), e.pass.Number), f)
	case e.leaked < e.samples:
		return detect.Found("all that is trained on is evaluated, and more: predictions for everything there is", f)
	case e.across():
		return detect.CannotTell("all that it evaluates is trained on, by other ranks alone: the error in training, " +
			"or what this rank holds back").Noting(f)
	}
	return detect.Found("all that it evaluates is trained on: it looks at the error in training", f)
}

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	ledger *samples.Attribution
	ranks  timeline.Ranks

	evals []*evaluation // that have something trained before them
	worst *evaluation
}

// choose the evaluation to tell about: the first one of the surest.
func (v *verdict) choose() {
	for _, e := range v.evals {
		if c := v.certainty(e); c > 0 && (v.worst == nil || c > v.certainty(v.worst)) {
			v.worst = e
		}
	}
}

// certainty that the model should not have been trained on these samples.
//
// All that is evaluated was trained on: that is how one looks at the error in
// training. All that was trained on is evaluated, and more: predictions for
// everything there is. What a rank holds back from its own training alone is
// neither.
func (v *verdict) certainty(e *evaluation) finding.Certainty {
	switch {
	case e.leaked == 0:
		return 0
	case v.moved(e):
		return 0
	case e.leaked == e.samples && !e.heldBack(), e.leaked == e.trained:
		return finding.Note
	case e.other() && v.ledger.Fixed(e.pass.Loader): // its training draws random numbers: the same samples, augmented, or others
		return finding.Likely
	case !v.surely(e):
		return finding.Likely
	case e.pass.Blind || slices.ContainsFunc(e.phase, func(p *samples.Pass) bool { return p.Blind }):
		return finding.Likely
	}
	return finding.Proven
}

// surely reports whether some of the samples are known to be the same.
func (v *verdict) surely(e *evaluation) bool {
	for n := range e.in {
		if v.ledger.Sure(v.ledger.Passes[n], e.pass) == samples.Same {
			return true
		}
	}
	return false
}

// moved reports whether an index is another sample in the evaluation than in its
// training, neither of which draws random numbers.
func (v *verdict) moved(e *evaluation) bool {
	return e.other() && v.ledger.Fixed(e.pass.Loader) &&
		!slices.ContainsFunc(e.phase, func(p *samples.Pass) bool { return !v.ledger.Fixed(p.Loader) })
}

// seen is what is known of all evaluations of a loader together.
type seen struct {
	judged, samples int         // evaluations after training that is known, and samples of the largest
	left, of        int         // samples of one of them that the same optimizers trained on before
	moved           *evaluation // whose indices were trained on, but not its samples
	apart           bool        // the dataset of one is not that of its training
	unsure, foreign bool        // see evaluation
}

func (v *verdict) seen() (s seen) {
	for _, e := range v.evals {
		if e.left > s.left {
			s.left, s.of = e.left, e.samples
		}
		if v.moved(e) {
			s.moved = e
		}
		if len(e.phase) == 0 {
			continue
		}
		s.samples = max(s.samples, e.samples)
		s.judged++
		s.unsure = s.unsure || e.unsure
		s.foreign = s.foreign || e.foreign
		s.apart = s.apart || e.twins || !e.shares
	}
	return s
}

// nothing was found.
func (v *verdict) nothing() detect.Verdict {
	role, s := v.ranks.Role(), v.seen()
	switch {
	case role == timeline.Train && v.evaluated():
		return detect.NotApplicable("it trains; the evaluations are judged at their loaders")
	case role == timeline.Train:
		return detect.CannotTell("no evaluation was seen")
	case slices.ContainsFunc(v.ranks, (*timeline.Loader).Iterable):
		return detect.CannotTell("an IterableDataset has no indices")
	case role != timeline.Eval:
		return detect.CannotTell("neither training nor an evaluation was seen")
	case s.moved != nil:
		return detect.CannotTell(fmt.Sprintf("%s at indices that were trained on, but what is there is another sample: "+
			"%d that were compared differ",
			words.Share(s.moved.leaked, s.moved.samples), s.moved.unlike))
	case s.left > 0:
		return detect.CannotTell(fmt.Sprintf("the same optimizer trained on %s before, in another fold or in loaders that were made after "+
			"an evaluation: whether the model was reset is not known", words.Share(s.left, s.of)))
	case s.judged == 0:
		return detect.CannotTell("no evaluation whose samples are known, after training whose samples are known")
	case s.apart:
		return detect.CannotTell("training has a dataset object of its own: whether some of its samples are the same is not known")
	case s.unsure:
		return detect.CannotTell("other ranks trained as well: whether their datasets hold the same samples at the same indices is not known")
	case s.foreign:
		return detect.CannotTell("other ranks trained as well: whether they train this model or one of their own is not known")
	}
	return v.clean(s)
}

// manySampled of an evaluation must have been looked at where some are left out:
// then of a leak of one in a hundred something is seen, but once in 20,000.
const manySampled = 1000

func (v *verdict) clean(s seen) detect.Verdict {
	reason := fmt.Sprintf("none of %s samples was trained on before, in %s", words.Number(int64(s.samples*v.ledger.Scale())),
		words.Count(s.judged, "evaluation"))
	left := v.left()
	switch {
	case left == "":
		return detect.Clean(reason)
	case s.samples < manySampled:
		return detect.CannotTell(reason + "; " + left)
	}
	return detect.Clean(reason + "; " + left)
}

// left says what samples were left out.
func (v *verdict) left() string {
	indices, _ := v.ledger.Halved()
	return words.OneIn(indices, "indices")
}

// evaluated reports whether any loader evaluates.
func (v *verdict) evaluated() bool {
	return slices.ContainsFunc(v.Loaders, func(l *timeline.Loader) bool { return l.Role == timeline.Eval })
}

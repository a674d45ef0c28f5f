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
	Excuses: excuses,
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	v := &verdict{Timeline: c.Timeline, ledger: detect.Of(c, samples.Source), ranks: c.Loaders, evals: detect.Of(c, evaluated)[c.ID()]}
	v.choose()
	if v.worst == nil || v.certainty(v.worst) == finding.Note {
		if e := v.copying(); e != nil {
			return detect.Found(fmt.Sprintf("copies of %s of pass %d were trained on", words.Share(e.copies.n, e.copies.looked), e.pass.Number),
				v.copied(e))
		}
	}
	if v.worst == nil {
		return v.nothing()
	}
	e, f := v.worst, v.finding()
	switch {
	case f.Certainty > finding.Note:
		return detect.Found(fmt.Sprintf("%s of pass %d were trained on", words.Share(e.leaked, e.samples), e.pass.Number), f)
	case e.leaked == e.trained && e.leaked < e.samples:
		return detect.Found("all that is trained on is evaluated, and more: predictions for everything there is", f)
	case e.across():
		return detect.CannotTell("all that it evaluates is trained on, by other ranks alone: the error in training, " +
			"or what this rank holds back").Noting(f)
	case e.leaked < e.samples:
		return detect.Found("all that it evaluates is dealt to the training: it looks at the error in training", f)
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

// choose the evaluation to tell about: the first one of those that leave the fewest
// excuses open.
func (v *verdict) choose() {
	rated := 0
	for _, e := range v.evals {
		if rate := v.rate(e); rate > rated {
			v.worst, rated = e, rate
		}
	}
}

// rate an evaluation: 0 for one without a leak, 1 for a note, 2 for a leak, and 1
// more for each excuse that it leaves no room for.
func (v *verdict) rate(e *evaluation) int {
	c := v.certainty(e)
	n := min(int(c), 2)
	if c > finding.Note {
		for _, x := range doubts {
			if x.excluded(v, e) {
				n++
			}
		}
	}
	return n
}

// certainty that the model should not have been trained on these samples, if no
// excuse is open: 0 there is no leak.
//
// All that is evaluated was trained on, or is dealt to the training some time: that
// is how one looks at the error in training. All that was trained on is evaluated,
// and more: predictions for everything there is. What a rank holds back from its
// own training alone is neither. What came to the training after it was evaluated
// may have been chosen by that.
func (v *verdict) certainty(e *evaluation) finding.Certainty {
	switch {
	case e.leaked == 0, v.moved(e):
		return 0
	case e.leaked+e.dealt == e.samples && !e.heldBack(), e.leaked == e.trained:
		return finding.Note
	case e.chosen > 0, !e.heldOut():
		return 0
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
// training: neither of them draws random numbers, or the dataset is told which of
// them it is.
func (v *verdict) moved(e *evaluation) bool {
	return e.other() && (e.mode.Path != "" || v.ledger.Fixed(e.pass.Loader) &&
		!slices.ContainsFunc(e.phase, func(p *samples.Pass) bool { return !v.ledger.Fixed(p.Loader) }))
}

// Package leak is the rule split-leak: samples that a model is evaluated on have
// been trained on. docs/rules/split-leak.md explains it.
package leak

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	Title:   "Samples are evaluated that the model was trained on",
	Sources: []collect.Any{samples.Source, values.Source},
	Judge:   detect.Adapt(judge),
}

const id = "split-leak"

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	ledger := collect.Of(e, samples.Source)
	all := evaluations(t, ledger)
	compare(t, collect.Of(e, values.Source), ledger, all)
	verdicts := map[int]*verdict{}
	for _, e := range all {
		n := e.pass.Loader.ID
		if verdicts[n] == nil {
			verdicts[n] = &verdict{Timeline: t, ledger: ledger}
		}
		verdicts[n].evals = append(verdicts[n].evals, e)
	}
	for _, ranks := range t.ByLoader() {
		v := verdicts[ranks.ID()]
		if v == nil {
			v = &verdict{Timeline: t, ledger: ledger}
		}
		v.ranks = ranks
		v.choose()
		if v.worst != nil {
			findings = append(findings, v.finding())
		}
		checks = append(checks, v.check())
	}
	return findings, checks
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
	case len(e.leaked) == 0:
		return 0
	case v.moved(e):
		return 0
	case len(e.leaked) == e.samples && !e.heldBack(), len(e.leaked) == e.trained:
		return finding.Note
	case e.other() && v.ledger.Fixed(e.pass.Loader): // its training draws random numbers: the same samples, augmented, or others
		return finding.Likely
	case !slices.ContainsFunc(e.leaked, func(x leaked) bool {
		p := v.ledger.Passes[x.trained.Pass]
		return v.ledger.Sure(p, e.pass) == samples.Same
	}):
		return finding.Likely
	case e.pass.Blind || slices.ContainsFunc(e.phase, func(p *samples.Pass) bool { return p.Blind }):
		return finding.Likely
	}
	return finding.Proven
}

// moved reports whether an index is another sample in the evaluation than in its
// training, neither of which draws random numbers.
func (v *verdict) moved(e *evaluation) bool {
	return e.other() && v.ledger.Fixed(e.pass.Loader) && !slices.ContainsFunc(e.phase, func(p *samples.Pass) bool { return !v.ledger.Fixed(p.Loader) })
}

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.ranks.ID(), Status: finding.CannotTell}
	gap := v.ranks.Distinct(func(l *timeline.Loader) string { return v.Losses(l, samples.Tables) })
	role := v.ranks.Role()
	n, judged, of, left, apart, unsure, foreign := 0, 0, 0, 0, false, false, false
	var moved *evaluation
	for _, e := range v.evals {
		if e.left > left {
			left, of = e.left, e.samples
		}
		if v.moved(e) {
			moved = e
		}
		if len(e.phase) == 0 {
			continue
		}
		n = max(n, e.samples)
		judged++
		unsure = unsure || e.unsure
		foreign = foreign || e.foreign
		apart = apart || e.twins || !e.shares
	}
	switch {
	case v.worst != nil && v.certainty(v.worst) > finding.Note:
		c.Status, c.Reason = finding.Found, fmt.Sprintf("%s of pass %d were trained on", words.Share(len(v.worst.leaked), v.worst.samples), v.worst.pass.Number)
	case gap != "":
		c.Reason = gap
	case v.worst != nil && len(v.worst.leaked) == v.worst.samples && v.worst.across():
		c.Reason = "all that it evaluates is trained on, by other ranks alone: the error in training, or what this rank holds back"
	case v.worst != nil && len(v.worst.leaked) == v.worst.samples:
		c.Status, c.Reason = finding.Clean, "all that it evaluates is trained on: it looks at the error in training"
	case v.worst != nil:
		c.Status, c.Reason = finding.Clean, "all that is trained on is evaluated, and more: predictions for everything there is"
	case role == timeline.Train:
		c.Status, c.Reason = finding.Clean, "it trains; the evaluations are judged at their loaders"
		if !v.evaluated() {
			c.Status, c.Reason = finding.CannotTell, "no evaluation was seen"
		}
	case slices.ContainsFunc(v.ranks, (*timeline.Loader).Iterable):
		c.Reason = "an IterableDataset has no indices"
	case role != timeline.Eval:
		c.Reason = "neither training nor an evaluation was seen"
	case moved != nil:
		c.Reason = fmt.Sprintf("%s at indices that were trained on, but what is there is another sample: %d that were compared differ", words.Share(len(moved.leaked), moved.samples), moved.unlike)
	case left > 0:
		c.Reason = fmt.Sprintf("the same optimizer trained on %s before, in another fold or in loaders that were made after an evaluation: whether the model was reset is not known", words.Share(left, of))
	case judged == 0:
		c.Reason = "no evaluation whose samples are known, after training whose samples are known"
	case apart:
		c.Reason = "training has a dataset object of its own: whether some of its samples are the same is not known"
	case unsure:
		c.Reason = "other ranks trained as well: whether their datasets hold the same samples at the same indices is not known"
	case foreign:
		c.Reason = "other ranks trained as well: whether they train this model or one of their own is not known"
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("none of %s samples was trained on before, in %s", words.Number(int64(n*v.ledger.Scale())), words.Count(judged, "evaluation"))
		if told := v.ledger.SamplingNote(); told != "" {
			if n < manySampled {
				c.Status = finding.CannotTell
			}
			c.Reason += "; " + told
		}
	}
	return c
}

// manySampled of an evaluation must have been looked at where some are left out:
// then of a leak of one in a hundred something is seen, but once in 20,000.
const manySampled = 1000

// evaluated reports whether any loader evaluates.
func (v *verdict) evaluated() bool {
	return slices.ContainsFunc(v.Loaders, func(l *timeline.Loader) bool { return l.Role == timeline.Eval })
}

package splitleak

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// seen is what is known of all evaluations of a loader together.
type seen struct {
	judged, samples int         // evaluations after training that is known, and samples of the largest
	left, of        int         // samples of one of them that the same optimizers trained on before
	moved           *evaluation // whose indices were trained on, but not its samples
	chosen          *evaluation // whose samples were trained on, before and after it
	drawn           *evaluation // as many of whose samples were trained on as of any that training may draw
	models          int         // one of which an evaluation may be of
	equal           *evaluation // which has contents that were trained on
	incomplete      bool        // not all contents were compared
	apart           bool        // the dataset of one is not that of its training
	unsure, foreign bool        // see evaluation
}

func (v *verdict) seen() (s seen) {
	for _, e := range v.evals {
		if e.left > s.left {
			s.left, s.of = e.left, e.samples
		}
		switch {
		case e.leaked == 0:
		case v.moved(e):
			s.moved = e
		case e.chosen > 0:
			s.chosen = e
		case !e.heldOut():
			s.drawn = e
		}
		s.models = max(s.models, e.models)
		if e.copies.n > 0 {
			s.equal = e
		}
		if len(e.phase) == 0 {
			continue
		}
		s.incomplete = s.incomplete || !v.comparable(e)
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
			"%d that were compared differ%s",
			words.Share(s.moved.leaked, s.moved.samples), s.moved.unlike, s.moved.told()))
	case s.chosen != nil:
		return detect.CannotTell(fmt.Sprintf("%s had been trained on, and %s more were after it, with loaders that were made since: "+
			"it may be what chooses them", words.Share(s.chosen.leaked, s.chosen.samples), words.Number(int64(s.chosen.chosen))))
	case s.drawn != nil:
		return detect.CannotTell(fmt.Sprintf("%s had been trained on, as many as of any that the training may draw: it may be a part of these",
			words.Share(s.drawn.leaked, s.drawn.samples)))
	}
	return v.unseen(s)
}

// told says what the dataset was told.
func (e *evaluation) told() string {
	m := e.mode
	switch {
	case m.Path == "":
		return ""
	case m.Here == "" || m.There == "":
		return fmt.Sprintf("; %s is not what it was in training", m.Path)
	}
	return fmt.Sprintf("; %s is %s, and was %s in training", m.Path, m.Here, m.There)
}

// unseen is where nothing that was trained on was evaluated, as far as could be
// compared.
func (v *verdict) unseen(s seen) detect.Verdict {
	switch {
	case s.left > 0:
		return detect.CannotTell(fmt.Sprintf("the same optimizer trained on %s before, in another fold or in loaders that were made after "+
			"an evaluation: whether the model was reset is not known", words.Share(s.left, s.of)))
	case s.judged == 0:
		return detect.CannotTell("no evaluation whose samples are known, after training whose samples are known")
	case s.models > 0:
		return detect.CannotTell(fmt.Sprintf("%d models were trained side by side, and one of them on none of these samples: "+
			"which one is evaluated is not known", s.models))
	case s.equal != nil:
		of := ""
		if s.equal.copies.apart {
			of = "training has a dataset object of its own, and "
		}
		return detect.CannotTell(fmt.Sprintf(of+"%s contain, bit for bit, what samples that were trained on contain: rows that are equal "+
			"by themselves, or copies", words.Share(s.equal.copies.n, s.equal.copies.looked)))
	case s.apart && s.incomplete:
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
	if s.apart {
		reason += ": no content is in both datasets"
	}
	left := v.left()
	switch {
	case left == "":
		return detect.Clean(reason)
	case s.samples < manySampled:
		return detect.CannotTell(reason + "; " + left)
	}
	return detect.Clean(reason + "; " + left)
}

// comparable reports whether contents say of all samples of an evaluation whether
// they were trained on: all were compared, and none is augmented.
func (v *verdict) comparable(e *evaluation) bool {
	return e.complete() && v.ledger.Fixed(e.pass.Loader) &&
		!slices.ContainsFunc(e.phase, func(p *samples.Pass) bool { return !v.ledger.Fixed(p.Loader) })
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

package splitleak

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
)

// doubt is a kind of program in which the same samples come in training and in an
// evaluation and nothing is wrong.
type doubt struct {
	text     string
	excluded func(*verdict, *evaluation) bool
}

// doubts beyond those that make it no finding: an evaluation before the training on
// its samples, one of what training is dealt anyway, one that chooses what is
// trained on, a fold of another model.
var doubts = []doubt{
	{
		"the dataset gives something else at an index when it evaluates than when it trains (what comes after, not an augmentation).",
		func(_ *verdict, e *evaluation) bool {
			return e.confirmed() || e.alike+e.unlike < enough && e.mode.Path == ""
		},
	},
	{
		"the collate function of the evaluation takes another part of each sample than that of training.",
		func(_ *verdict, e *evaluation) bool { return !e.collatesApart() },
	},
	{
		"another rank's dataset has other samples at the same indices.",
		(*verdict).surely,
	},
	{
		"these samples were not trained on: rows that would tell are lost.",
		func(_ *verdict, e *evaluation) bool {
			return !e.pass.Blind && !slices.ContainsFunc(e.phase, func(p *samples.Pass) bool { return p.Blind })
		},
	},
	{
		"what was trained on is meant to be evaluated too, and this number is not read as an error on new samples.",
		func(v *verdict, e *evaluation) bool { return v.certainty(e) > finding.Note }, // it has samples that are held out
	},
}

// ofCopies is the excuse for rows that were copied before the split: that these are
// no copies is never seen.
var ofCopies = detect.Excuse{
	Text: "these rows are equal by themselves (values of which there are few, data that comes again), and no copies.",
	Excluded: func(_ *detect.Case, f *finding.Finding) bool {
		_, of := f.Facts.(*copies)
		return !of
	},
}

// excuses are these, for the frame.
var excuses = func() (list []detect.Excuse) {
	for _, d := range doubts {
		list = append(list, detect.Excuse{Text: d.text, Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			if _, of := f.Facts.(*copies); of {
				return true
			}
			v, ok := f.Facts.(*verdict)
			return ok && d.excluded(v, v.worst)
		}})
	}
	return append(list, ofCopies)
}()

// collatesApart reports whether training and evaluation have each a collate function
// of the program's own.
func (e *evaluation) collatesApart() bool {
	own := func(name string) bool { return name != "" && !strings.HasPrefix(name, "torch.") }
	mine := e.pass.Object.Collate
	return own(mine) && slices.ContainsFunc(e.phase, func(p *samples.Pass) bool { return own(p.Object.Collate) && p.Object.Collate != mine })
}

package splitleak

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// phase is the passes of one process in which was trained what is evaluated; rest
// is what else the same optimizers trained on before.
type phase struct {
	block, rest map[*timeline.Pass]bool
	numbered    map[place]*timeline.Pass // of block
}

// place of a pass on all ranks.
type place struct{ loader, number int }

// phaseOf an evaluation is the passes of training between it and the evaluation
// before (those that follow one another are one), of the optimizers of the last
// of them; and the earlier passes of the same loader objects, of the same
// training. Folds make their loaders anew, so that of one fold is never in the
// phase of another. Loaders that were made after the first such evaluation are
// left out. It is nil if there are none, and nothing else was trained on before.
func phaseOf(e *samples.Pass, process *timeline.Process) *phase {
	before := trainedBefore(e, process)
	block := lastBlock(before)
	if len(block) == 0 {
		return nil
	}
	last, first := block[0], firstEvaluation(e.Loader)
	ph := &phase{block: map[*timeline.Pass]bool{}, rest: map[*timeline.Pass]bool{}, numbered: map[place]*timeline.Pass{}}
	add := func(p *timeline.Pass) {
		if p.DataLoader().TsNS <= first {
			ph.block[p] = true
			ph.numbered[place{p.Loader.ID, p.Number}] = p
		}
	}
	of := map[loaderObject][]*timeline.Pass{} // passes of the block
	for _, p := range block {
		of[objectOf(p)] = append(of[objectOf(p)], p)
		add(p)
	}
	for _, p := range before {
		k := objectOf(p)
		if p.Role == timeline.Train && !slices.Contains(block, p) && slices.ContainsFunc(of[k], p.SameTraining) {
			of[k] = append(of[k], p)
			add(p)
		}
	}
	for _, p := range before {
		if p.Role == timeline.Train && p.SameTraining(last) && !ph.block[p] {
			ph.rest[p] = true
		}
	}
	if len(ph.block) == 0 && len(ph.rest) == 0 {
		return nil
	}
	return ph
}

// loaderObject is one DataLoader object of a loader.
type loaderObject struct {
	loader *timeline.Loader
	number uint32
}

func objectOf(p *timeline.Pass) loaderObject { return loaderObject{p.Loader, p.Object} }

// trainedBefore is the passes of a process that train or evaluate, before an
// evaluation, by their begin.
func trainedBefore(e *samples.Pass, process *timeline.Process) (before []*timeline.Pass) {
	for _, l := range process.Loaders {
		for _, p := range l.Passes {
			if p.Begin < e.Begin && p.Delivered > 0 && (p.Role == timeline.Train || p.Evaluates()) {
				before = append(before, p)
			}
		}
	}
	slices.SortStableFunc(before, func(a, b *timeline.Pass) int { return cmp.Compare(a.Begin, b.Begin) })
	return before
}

// lastBlock is the last passes of training, those since the evaluation before: of
// one training, the last one first.
func lastBlock(before []*timeline.Pass) (block []*timeline.Pass) {
	for _, p := range slices.Backward(before) {
		switch {
		case p.Role != timeline.Train && len(block) > 0:
			return block // the evaluation before
		case p.Role == timeline.Train && (len(block) == 0 || p.SameTraining(block[0])):
			block = append(block, p)
		}
	}
	return block
}

// firstEvaluation is when a loader first evaluated all it has. What is trained
// on by loaders that are made later may have been chosen by it: pseudo-labels,
// hard examples, queries of active learning.
func firstEvaluation(l *timeline.Loader) int64 {
	for _, p := range l.Passes {
		if p.Delivered > 0 && !p.Abandoned && p.Role != timeline.Train && !rehearsal(p) {
			return p.Begin
		}
	}
	return math.MaxInt64
}

// rehearsal reports whether a pass is that of Lightning before training: its Trainer
// makes the loader that trains only after it, whatever it brought.
func rehearsal(p *timeline.Pass) bool {
	return !p.Stepped() && lightning.MatchString(p.DataLoader().Stack)
}

var lightning = regexp.MustCompile(`(?m)-packages/(pytorch_lightning|lightning/pytorch)/loops/([a-z]+/)*evaluation_loop\.py:\d+$`)

// has reports whether a pass is of the phase of an evaluation, in its process or
// on another rank, and how sure it is that their datasets are one.
func (ph *phase) has(p *timeline.Pass, e *samples.Pass, j *samples.Attribution) (bool, samples.Sameness) {
	own := e.Loader.Process
	if p.Loader.Process == own {
		return ph.block[p], samples.Same
	}
	q := ph.numbered[place{p.Loader.ID, p.Number}]
	if q == nil || p.Role != timeline.Train || !timeline.Together(p.Loader.Process, own) {
		return false, 0
	}
	return true, min(j.SureOf(p), j.SureOf(q), j.SureOf(e.Pass))
}

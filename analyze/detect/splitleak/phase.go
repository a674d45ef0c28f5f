package splitleak

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// phase is the passes of one process in which was trained what is evaluated; rest
// is what else the same optimizers trained on before.
type phase struct {
	last        *timeline.Pass // of training
	block, rest map[*timeline.Pass]bool
	numbered    map[place]*timeline.Pass // of block
	objects     map[loaderObject]bool    // that deal the block; true: all they have, in a pass that was over before
}

// place of a pass on all ranks.
type place struct{ loader, number int }

// phasesOf an evaluation is one for each training that took place between it and the
// evaluation before, the last one first: the evaluated model may be any of theirs. A
// phase is the passes of one training since the evaluation before (those that
// follow one another are one), and the earlier passes of the same loader objects,
// of the same training. Folds make their loaders anew, so that of one fold is
// never in the phase of another. Loaders that were made after the first such
// evaluation are left out.
func phasesOf(e *samples.Pass, process *timeline.Process) (all []*phase) {
	before := trainedBefore(e, process)
	for _, block := range lastBlocks(before) {
		if ph := phaseOf(e, before, block); len(ph.block) > 0 || len(ph.rest) > 0 {
			all = append(all, ph)
		}
	}
	return all
}

func phaseOf(e *samples.Pass, before, block []*timeline.Pass) *phase {
	last, first := block[0], firstEvaluation(e.Loader)
	ph := &phase{last: last, block: map[*timeline.Pass]bool{}, rest: map[*timeline.Pass]bool{},
		numbered: map[place]*timeline.Pass{}, objects: map[loaderObject]bool{}}
	add := func(p *timeline.Pass) {
		if p.DataLoader().TsNS <= first {
			ph.block[p] = true
			ph.numbered[place{p.Loader.ID, p.Number}] = p
			k := objectOf(p)
			ph.objects[k] = ph.objects[k] || whole(p) && p.End <= e.Begin
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
	return ph
}

// whole reports whether a pass dealt all that its loader has: what the same object
// deals in another pass and not in this one, has come to it in between.
func whole(p *timeline.Pass) bool {
	o := p.DataLoader()
	if !p.Exhausted || o.DropLast || samplers.SharingOf(o) != samplers.EachItsOwn {
		return false
	}
	n := samplers.Samples(o)
	return n == 0 || o.Length < 0 || int64(n) >= o.Length
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
			if p.Begin < e.Begin && p.Delivered > 0 && (p.Role == timeline.Train || evaluates(p)) {
				before = append(before, p)
			}
		}
	}
	slices.SortStableFunc(before, func(a, b *timeline.Pass) int { return cmp.Compare(a.Begin, b.Begin) })
	return before
}

// evaluates reports whether a pass evaluates: its role says so where its loop was
// watched; else it has to be a loop of its own.
func evaluates(p *timeline.Pass) bool {
	return p.Role == timeline.Eval && (p.Watched() || p.Evaluates())
}

// lastBlocks are the last passes of training, those since the evaluation before, by
// training, each with the last one first.
func lastBlocks(before []*timeline.Pass) (blocks [][]*timeline.Pass) {
	for _, p := range slices.Backward(before) {
		if p.Role != timeline.Train {
			if len(blocks) > 0 {
				return blocks // the evaluation before
			}
			continue
		}
		i := slices.IndexFunc(blocks, func(block []*timeline.Pass) bool { return slices.ContainsFunc(block, p.SameTraining) })
		if i < 0 {
			blocks = append(blocks, []*timeline.Pass{p})
		} else {
			blocks[i] = append(blocks[i], p)
		}
	}
	return blocks
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
// on another rank, and how sure it is that their datasets are one. own is the pass
// of the evaluating process that ran beside it.
func (ph *phase) has(p *timeline.Pass, e *samples.Pass, j *samples.Attribution) (own *timeline.Pass, sure samples.Sameness) {
	process := e.Loader.Process
	if p.Loader.Process == process {
		if ph.block[p] {
			return p, samples.Same
		}
		return nil, 0
	}
	q := ph.numbered[place{p.Loader.ID, p.Number}]
	if q == nil || p.Role != timeline.Train || !timeline.Together(p.Loader.Process, process) {
		return nil, 0
	}
	return q, min(j.SureOf(p), j.SureOf(q), j.SureOf(e.Pass))
}

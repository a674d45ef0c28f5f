package leak

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// evaluation is one pass that evaluates, and the training that it is of.
type evaluation struct {
	pass   *samples.Pass
	number int             // in Judged.Passes
	phase  []*samples.Pass // of training
	before []*samples.Pass // that the same optimizers trained in and that are not of the phase

	samples int // different ones that it was given
	trained int // different ones of its dataset that were trained on
	own     int // of these, on the rank that evaluates
	leaked  []leaked
	left    int  // of the other samples, those that were trained on in before
	alike   int  // leaked samples that had the same content in training, of those that were compared
	unlike  int  // and those that had another one
	twins   bool // a dataset like its own, but another object, is trained on
	shares  bool // a dataset of its own samples is trained on
	unsure  bool // another rank trains on a dataset that is not known to be the same
	foreign bool // another rank trains, and is not known to train the same model
}

// leaked is a sample that was trained on before.
type leaked struct {
	index         int64
	eval, trained samples.Given
	own           bool // the rank that evaluates it trained on it
}

// mostEvaluations of each loader object are judged: one tells of a split as well
// as a hundred.
const mostEvaluations = 16

// evaluations of all loaders, with the samples that were trained on before.
func evaluations(t *timeline.Timeline, j *samples.Attribution) []*evaluation {
	var all []*evaluation
	numbers := map[*samples.Pass]int{}
	byProcess := map[*timeline.Process][]*samples.Pass{}
	for i, p := range j.Passes {
		numbers[p] = i
		byProcess[p.Loader.Process] = append(byProcess[p.Loader.Process], p)
	}
	for _, process := range t.Processes {
		passes := byProcess[process]
		slices.SortStableFunc(passes, func(a, b *samples.Pass) int { return cmp.Compare(a.Begin, b.Begin) })
		count := map[uint32]int{}
		for _, p := range passes {
			if !p.Evaluates() || count[p.Pass.Object] == mostEvaluations {
				continue
			}
			phase, rest := phaseOf(p, process)
			if len(phase) == 0 && len(rest) == 0 {
				continue
			}
			count[p.Pass.Object]++
			e := &evaluation{pass: p, number: numbers[p]}
			for _, q := range j.Passes {
				if slices.Contains(rest, q.Pass) {
					e.before = append(e.before, q)
				}
				in, sure := phase.has(q.Pass, p, j)
				switch {
				case in && !oneModel(t, q.Loader.Process, process):
					e.foreign = e.foreign || t.Relation(q.Loader.Process, process) != timeline.Apart
				case in && sure > samples.Unknown:
					e.phase = append(e.phase, q)
				case in:
					e.unsure = true
				}
			}
			e.twins = slices.ContainsFunc(e.phase, func(q *samples.Pass) bool { return twin(p, q) })
			all = append(all, e)
		}
	}
	count(j, all, numbers)
	return all
}

// across reports whether only other ranks trained on what this one evaluates.
func (e *evaluation) across() bool {
	return len(e.leaked) > 0 && !slices.ContainsFunc(e.leaked, func(x leaked) bool { return x.own })
}

// enoughMissed of what is evaluated would have been on the evaluating rank as
// well if that had a share of it like of everything: e^-20 is the chance of none.
const enoughMissed = 20

// heldBack reports whether the rank that evaluates keeps its samples from its own
// training, and only from that: no look at the error in training.
func (e *evaluation) heldBack() bool {
	return e.across() && len(e.leaked)*e.own >= enoughMissed*e.trained
}

// phase is the passes of one process in which was trained what is evaluated.
type phase []*timeline.Pass

// phaseOf an evaluation is the passes of training between it and the evaluation
// before (those that follow one another are one), of the optimizers of the last
// of them; and the earlier passes of the same loader objects, of the same
// training. Folds make their loaders anew, so that of one fold is never in the
// phase of another. Loaders that were made after the first such evaluation are
// left out. rest is what else these optimizers trained on before.
func phaseOf(e *samples.Pass, process *timeline.Process) (block, rest phase) {
	var before []*timeline.Pass // by their begin
	for _, l := range process.Loaders {
		for _, p := range l.Passes {
			if p.Begin < e.Begin && p.Delivered > 0 && (p.Role == timeline.Train || p.Evaluates()) {
				before = append(before, p)
			}
		}
	}
	slices.SortStableFunc(before, func(a, b *timeline.Pass) int { return cmp.Compare(a.Begin, b.Begin) })
	for i := len(before) - 1; i >= 0; i-- {
		p := before[i]
		if p.Role != timeline.Train && len(block) > 0 {
			break // the evaluation before
		}
		if p.Role == timeline.Train && (len(block) == 0 || p.SameTraining(block[0])) {
			block = append(block, p)
		}
	}
	if len(block) == 0 {
		return nil, nil
	}
	last := block[0]
	for _, p := range before {
		if p.Role == timeline.Train && !slices.Contains(block, p) && slices.ContainsFunc(block, func(q *timeline.Pass) bool { return q.Loader == p.Loader && q.Object == p.Object && q.SameTraining(p) }) {
			block = append(block, p)
		}
	}
	first := firstEvaluation(e.Loader)
	block = slices.DeleteFunc(block, func(p *timeline.Pass) bool { return p.DataLoader().TsNS > first })
	for _, p := range before {
		if p.Role == timeline.Train && p.SameTraining(last) && !slices.Contains(block, p) {
			rest = append(rest, p)
		}
	}
	return block, rest
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
func (ph phase) has(p *timeline.Pass, e *samples.Pass, j *samples.Attribution) (bool, samples.Sameness) {
	own := e.Loader.Process
	if p.Loader.Process == own {
		return slices.Contains(ph, p), samples.Same
	}
	if p.Role != timeline.Train || !timeline.Together(p.Loader.Process, own) {
		return false, 0
	}
	for _, q := range ph {
		if q.Loader.ID == p.Loader.ID && q.Number == p.Number {
			return true, min(j.SureOf(p), j.SureOf(q), j.SureOf(e.Pass))
		}
	}
	return false, 0
}

// oneModel reports whether two processes are known to train one model: ranks whose
// gradients are reduced together. Others may be an ensemble, folds, trials, with
// a split for each.
func oneModel(t *timeline.Timeline, a, b *timeline.Process) bool {
	return a == b || t.Relation(a, b) == timeline.DataParallel
}

// twin reports whether two passes are over two dataset objects of one class and
// one length.
func twin(p, q *samples.Pass) bool {
	a, b := p.Object, q.Object
	return p.Loader.Process == q.Loader.Process && a.DatasetID != b.DatasetID && a.DatasetID != 0 && b.DatasetID != 0 && a.DatasetClass == b.DatasetClass && a.Length == b.Length
}

// count what of the evaluations was trained on.
func count(j *samples.Attribution, all []*evaluation, numbers map[*samples.Pass]int) {
	of := make([][]*evaluation, len(j.Passes))    // of which a pass is, or is the training of
	after := make([][]*evaluation, len(j.Passes)) // before which it trained
	for _, e := range all {
		of[e.number] = append(of[e.number], e)
		for _, p := range e.phase {
			of[numbers[p]] = append(of[numbers[p]], e)
		}
		for _, p := range e.before {
			after[numbers[p]] = append(after[numbers[p]], e)
		}
	}
	type seen struct {
		eval, trained *samples.Given
		own, before   bool
	}
	found := map[*evaluation]seen{}
	datasets := map[*evaluation][2]map[int]bool{} // evaluated, trained on
	for _, e := range all {
		datasets[e] = [2]map[int]bool{{}, {}}
	}
	for origin, given := range j.Each() {
		clear(found)
		for i := range given {
			g := &given[i]
			for _, e := range of[g.Pass] {
				s := found[e]
				switch {
				case g.Pass != e.number:
					s.own = s.own || j.Passes[g.Pass].Loader.Process == e.pass.Loader.Process
					if s.trained == nil {
						s.trained = g
					}
				case s.eval == nil:
					s.eval = g
				}
				found[e] = s
			}
			for _, e := range after[g.Pass] {
				s := found[e]
				s.before = true
				found[e] = s
			}
		}
		for e, s := range found {
			if s.eval != nil {
				e.samples++
				datasets[e][0][origin.Dataset] = true
			}
			if s.trained != nil {
				e.trained++
				if s.own {
					e.own++
				}
				datasets[e][1][origin.Dataset] = true
			}
			if s.eval != nil && s.trained != nil {
				e.leaked = append(e.leaked, leaked{origin.Index, *s.eval, *s.trained, s.own})
			} else if s.eval != nil && s.before {
				e.left++
			}
		}
	}
	for _, e := range all {
		for n := range datasets[e][0] {
			e.shares = e.shares || datasets[e][1][n]
		}
	}
}

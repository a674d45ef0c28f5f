package splitleak

import (
	"cmp"
	"math"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// evaluated is the evaluations of all loaders, by their IDs.
var evaluated = &collect.Source[map[int][]*evaluation]{
	Name: "evaluations",
	Uses: []collect.Any{samples.Source, batches.Delivered},
	New:  func() collect.Collector[map[int][]*evaluation] { return rows{} },
}

// rows are none: all is told by others.
type rows struct{}

func (rows) Add(traces.Batch)                               {}
func (rows) Merge(collect.Collector[map[int][]*evaluation]) {}

func (rows) Build(e *collect.Evidence) map[int][]*evaluation {
	t, j := collect.Of(e, timeline.Source), collect.Of(e, samples.Source)
	numbers := map[*samples.Pass]int{}
	for i, p := range j.Passes {
		numbers[p] = i
	}
	all := evaluations(t, j, numbers)
	for _, one := range all {
		one.delivered = collect.Of(e, batches.Delivered)
	}
	count(j, all, numbers)
	all = choose(all)
	compare(j, all, numbers)
	of := map[int][]*evaluation{}
	for _, e := range all {
		of[e.pass.Loader.ID] = append(of[e.pass.Loader.ID], e)
	}
	return of
}

// evaluation is one pass that evaluates, and the training that it is of.
type evaluation struct {
	pass      *samples.Pass
	number    int                              // in Attribution.Passes
	phase     []*samples.Pass                  // of training
	rest      []*samples.Pass                  // that the same optimizers trained in before and that are not of the phase
	deals     []*samples.Pass                  // what else the loader objects of the phase deal, whenever
	later     []*samples.Pass                  // in which the training goes on, with other loader objects
	beside    map[*samples.Pass]*timeline.Pass // of the phase: the pass of the evaluating process that ran at the same time
	renewed   map[*samples.Pass]bool           // after it, of objects that had dealt all they have before
	delivered batches.ByPass[batches.Deliveries]

	samples int   // different ones that it was given
	trained int   // different ones of its dataset that were trained on before
	end     int64 // of the indices that were asked for
	reach   int   // different ones that the loaders of its training deal at any time
	own     int   // of those that were trained on, on the rank that evaluates
	leaked  int   // different ones that it was given and that were trained on before
	dealt   int   // of the others, those that the loaders of its training deal, before or after
	chosen  int   // of the others, those that came to its training after it
	asked   []uint32
	leaks   []uint32 // serial numbers of the samples
	shown   []leak
	owned   bool         // of them, some on the rank that evaluates
	in      map[int]bool // the passes that they were trained on first
	left    int          // of the other samples, those that were trained on in the rest
	dataset int          // that the first leaked one comes from
	mode    samples.Mode // what that was told in the evaluation and not in its training; no path: nothing
	alike   int          // leaked samples that had the same content in training, of those that were compared
	unlike  int          // and those that had another one
	twins   bool         // a dataset like its own, but another object, is trained on
	shares  bool         // a dataset of its own samples is trained on
	unsure  bool         // another rank trains on a dataset that is not known to be the same
	foreign bool         // another rank trains, and is not known to train the same model
	models  int          // that were trained side by side before it, one of which it is right for; 0: it is known which one it is of
	copies  copies
}

// leak is a sample that was trained on before.
type leak struct {
	index         int64
	eval, trained samples.Given
}

// mostShown of them are kept.
const mostShown = 8

// mostEvaluations of each loader object are judged: one tells of a split as well
// as a hundred. mostOfLoader is of all objects that one loader has on one rank.
const (
	mostEvaluations = 16
	mostOfLoader    = 256
)

// evaluations of all loaders that have something trained before them, one for each
// model that may be meant.
func evaluations(t *timeline.Timeline, j *samples.Attribution, numbers map[*samples.Pass]int) (all []*evaluation) {
	byProcess := map[*timeline.Process][]*samples.Pass{}
	for _, p := range j.Passes {
		byProcess[p.Loader.Process] = append(byProcess[p.Loader.Process], p)
	}
	for _, process := range t.Processes {
		passes := byProcess[process]
		slices.SortStableFunc(passes, func(a, b *samples.Pass) int { return cmp.Compare(a.Begin, b.Begin) })
		objects, loaders := map[uint32]int{}, map[*timeline.Loader]int{}
		for _, p := range passes {
			if !evaluates(p.Pass) || objects[p.Pass.Object] == mostEvaluations || loaders[p.Loader] == mostOfLoader {
				continue
			}
			phases := phasesOf(p, process)
			if len(phases) > 0 {
				objects[p.Pass.Object]++
				loaders[p.Loader]++
			}
			for _, ph := range phases {
				e := &evaluation{pass: p, number: numbers[p], in: map[int]bool{},
					beside: map[*samples.Pass]*timeline.Pass{}, renewed: map[*samples.Pass]bool{}}
				e.place(t, j, ph)
				all = append(all, e)
			}
		}
	}
	return all
}

// place all passes in the training that the evaluation is of.
func (e *evaluation) place(t *timeline.Timeline, j *samples.Attribution, ph *phase) {
	process := e.pass.Loader.Process
	for _, q := range j.Passes {
		if ph.rest[q.Pass] {
			e.rest = append(e.rest, q)
		}
		own, sure := ph.has(q.Pass, e.pass, j)
		switch {
		case own == nil && q.Loader.Process == process:
			e.placeOther(q, ph)
		case own == nil:
		case !oneModel(t, q.Loader.Process, process):
			e.foreign = e.foreign || t.Relation(q.Loader.Process, process) != timeline.Apart
		case sure > samples.Unknown:
			e.phase = append(e.phase, q)
			e.beside[q] = own
			e.twins = e.twins || twin(e.pass, q)
			e.renewed[q] = ph.objects[objectOf(own)] && own.End > e.pass.Begin
		default:
			e.unsure = true
		}
	}
}

// placeOther places a pass of the evaluating process that is not of the phase.
func (e *evaluation) placeOther(q *samples.Pass, ph *phase) {
	over, known := ph.objects[objectOf(q.Pass)]
	switch {
	case known:
		e.deals = append(e.deals, q)
		e.renewed[q] = over && q.End > e.pass.Begin && q != e.pass
	case q.Begin > e.pass.Begin && q.Role == timeline.Train && q.SameTraining(ph.last):
		e.later = append(e.later, q)
	}
}

// roles that passes play in the evaluation.
func (e *evaluation) roles(play func(p *samples.Pass, as part, renewed bool)) {
	play(e.pass, asks, false)
	for _, p := range e.phase {
		play(p, trains, e.renewed[p])
	}
	for _, p := range e.deals {
		play(p, deals, e.renewed[p])
	}
	for _, p := range e.later {
		play(p, later, false)
	}
	for _, p := range e.rest {
		play(p, rest, false)
	}
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
	return p.Loader.Process == q.Loader.Process && a.DatasetID != b.DatasetID && a.DatasetID != 0 && b.DatasetID != 0 &&
		a.DatasetClass == b.DatasetClass && a.Length == b.Length
}

// precedes reports whether a step trained on a batch of the training before a
// batch of the evaluation was delivered. Another rank takes its steps together with
// this one.
func (e *evaluation) precedes(p *samples.Pass, batch, at int) bool {
	if p.Watched() && !p.Trained(batch) {
		return false
	}
	own := e.beside[p]
	taken, ok := e.delivered.Of(own).Steps(uint32(batch))
	now, known := e.delivered.Of(e.pass.Pass).Steps(uint32(at))
	if !ok || !known {
		return own.End <= e.pass.Begin
	}
	return taken < now
}

// across reports whether only other ranks trained on what this one evaluates.
func (e *evaluation) across() bool { return e.leaked > 0 && !e.owned }

// enoughMissed of what is evaluated would have been on the evaluating rank as
// well if that had a share of it like of everything: e^-20 is the chance of none.
const enoughMissed = 20

// heldBack reports whether the rank that evaluates keeps its samples from its own
// training, and only from that: no look at the error in training.
func (e *evaluation) heldBack() bool {
	return e.across() && e.leaked*e.own >= enoughMissed*e.trained
}

// heldOut reports whether some of what is evaluated is never dealt to the training:
// no pass over what it is dealt anyway, to look at its error, to score it or to
// weigh it. Where training draws from a part of a dataset, with replacement, and
// has not yet drawn all of it, the evaluation has to have more than a random share
// of what was never drawn.
func (e *evaluation) heldOut() bool {
	hit := e.leaked + e.dealt
	switch {
	case e.heldBack():
		return true
	case hit == e.samples:
		return false
	}
	for _, p := range e.phase {
		of := p.Object.Length
		if p.Object.DatasetID != 0 {
			of = max(of, e.end)
		}
		if !partly(p.Object) || of <= 0 {
			continue
		}
		share := min(float64(e.reach)/float64(of), 1)
		n := float64(e.samples)
		if float64(hit) >= n*share-3*math.Sqrt(n*share*(1-share))-1 {
			return false
		}
	}
	return true
}

// partly reports whether what a loader deals in some passes may be no more than a
// random part of what it deals in all.
func partly(o *traces.Loader) bool {
	n := int64(samplers.Samples(o))
	return samplers.SharingOf(o) != samplers.EachItsOwn || n > 0 && n < o.Length
}

// choose, of the evaluations that one pass may be, the one that is right.
func choose(all []*evaluation) (chosen []*evaluation) {
	for i := 0; i < len(all); {
		n := i + 1
		for n < len(all) && all[n].pass == all[i].pass {
			n++
		}
		one := all[i]
		for _, other := range all[i+1 : n] {
			if other.shares && other.leaked == 0 && one.leaked > 0 {
				one, other.models = other, n-i
			}
		}
		chosen = append(chosen, one)
		i = n
	}
	return chosen
}

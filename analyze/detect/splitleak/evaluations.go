package splitleak

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// evaluated is the evaluations of all loaders, by their IDs.
var evaluated = &collect.Source[map[int][]*evaluation]{
	Name: "evaluations",
	Uses: []collect.Any{samples.Source},
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
	count(j, all, numbers)
	compare(j, all, numbers)
	of := map[int][]*evaluation{}
	for _, e := range all {
		of[e.pass.Loader.ID] = append(of[e.pass.Loader.ID], e)
	}
	return of
}

// evaluation is one pass that evaluates, and the training that it is of.
type evaluation struct {
	pass   *samples.Pass
	number int             // in Attribution.Passes
	phase  []*samples.Pass // of training
	before []*samples.Pass // that the same optimizers trained in and that are not of the phase

	samples int // different ones that it was given
	trained int // different ones of its dataset that were trained on
	own     int // of these, on the rank that evaluates
	leaked  int // different ones that it was given and that were trained on
	shown   []leak
	owned   bool         // of them, some on the rank that evaluates
	in      map[int]bool // the passes that they were trained on first
	left    int          // of the other samples, those that were trained on in before
	alike   int          // leaked samples that had the same content in training, of those that were compared
	unlike  int          // and those that had another one
	twins   bool         // a dataset like its own, but another object, is trained on
	shares  bool         // a dataset of its own samples is trained on
	unsure  bool         // another rank trains on a dataset that is not known to be the same
	foreign bool         // another rank trains, and is not known to train the same model
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

// evaluations of all loaders that have something trained before them.
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
			if !p.Evaluates() || objects[p.Pass.Object] == mostEvaluations || loaders[p.Loader] == mostOfLoader {
				continue
			}
			if ph := phaseOf(p, process); ph != nil {
				objects[p.Pass.Object]++
				loaders[p.Loader]++
				e := &evaluation{pass: p, number: numbers[p], in: map[int]bool{}}
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
			e.before = append(e.before, q)
		}
		in, sure := ph.has(q.Pass, e.pass, j)
		switch {
		case in && !oneModel(t, q.Loader.Process, process):
			e.foreign = e.foreign || t.Relation(q.Loader.Process, process) != timeline.Apart
		case in && sure > samples.Unknown:
			e.phase = append(e.phase, q)
			e.twins = e.twins || twin(e.pass, q)
		case in:
			e.unsure = true
		}
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

// counting is of one evaluation.
type counting struct {
	*evaluation
	datasets [2]map[int]bool // evaluated, trained on

	serial  int            // of the sample that was looked at last
	asked   *samples.Given // by the evaluation
	trained *samples.Given // by training, first
	mine    bool           // on this rank
	earlier bool           // it was trained on in before
}

// count what of the evaluations was trained on.
func count(j *samples.Attribution, all []*evaluation, numbers map[*samples.Pass]int) {
	of := make([][]*counting, len(j.Passes))    // of which a pass is, or is the training of
	after := make([][]*counting, len(j.Passes)) // before which it trained
	for _, e := range all {
		c := &counting{evaluation: e, datasets: [2]map[int]bool{{}, {}}}
		of[e.number] = append(of[e.number], c)
		for _, p := range e.phase {
			of[numbers[p]] = append(of[numbers[p]], c)
		}
		for _, p := range e.before {
			after[numbers[p]] = append(after[numbers[p]], c)
		}
	}
	serial := 0
	var here []*counting
	for origin, given := range j.Each() {
		serial++
		here = here[:0]
		for i := range given {
			g := &given[i]
			for _, c := range of[g.Pass] {
				here = c.begin(serial, here)
				c.given(g, j.Passes[g.Pass])
			}
			for _, c := range after[g.Pass] {
				here = c.begin(serial, here)
				c.earlier = true
			}
		}
		for _, c := range here {
			c.end(origin)
		}
	}
}

// begin with another sample; here is those that have begun with it.
func (c *counting) begin(serial int, here []*counting) []*counting {
	if c.serial == serial {
		return here
	}
	c.serial, c.asked, c.trained, c.mine, c.earlier = serial, nil, nil, false, false
	return append(here, c)
}

// given: a pass was given the sample.
func (c *counting) given(g *samples.Given, p *samples.Pass) {
	switch {
	case g.Pass == c.number:
		if c.asked == nil {
			c.asked = g
		}
		return
	case c.trained == nil:
		c.trained = g
	}
	c.mine = c.mine || p.Loader.Process == c.pass.Loader.Process
}

// end with the sample.
func (c *counting) end(origin samples.Origin) {
	e := c.evaluation
	if c.asked != nil {
		e.samples++
		c.datasets[0][origin.Dataset] = true
	}
	if c.trained != nil {
		e.trained++
		if c.mine {
			e.own++
		}
		c.datasets[1][origin.Dataset] = true
	}
	switch {
	case c.asked != nil && c.trained != nil:
		e.leaked++
		e.owned = e.owned || c.mine
		e.in[c.trained.Pass] = true
		if len(e.shown) < mostShown {
			e.shown = append(e.shown, leak{origin.Index, *c.asked, *c.trained})
		}
	case c.asked != nil && c.earlier:
		e.left++
	}
	e.shares = e.shares || c.datasets[0][origin.Dataset] && c.datasets[1][origin.Dataset]
}

package splitleak

import (
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/samplers"
)

// part is what a pass has to do with an evaluation.
type part int

const (
	asks   part = iota // it is the evaluation
	trains             // it is of its training
	deals              // a loader object of its training hands out samples, at some other time
	later              // the same training goes on, with loaders that were made since
	rest               // the same training, before, and not of the phase
)

// counting is of one evaluation.
type counting struct {
	*evaluation
	datasets [2]map[int]bool // evaluated, trained on
	all      map[int]bool    // datasets of which training deals everything there is
	open     map[int]*fate   // by dataset: what was evaluated and not trained on before

	serial        int             // of the sample that was looked at last
	asked         *samples.Given  // by the evaluation, last
	taken         []samples.Given // by its training, at any time
	dealt, chosen bool
	earlier       bool // it was trained on in the rest
}

// fate is what became of samples that were not trained on before they were evaluated.
type fate struct{ dealt, chosen, other int }

// role is one that a pass plays.
type role struct {
	*counting
	part
	renewed bool // its loader object had dealt all it has before: what it deals now is new to it
}

// count what of the evaluations was trained on.
func count(j *samples.Attribution, all []*evaluation, numbers map[*samples.Pass]int) {
	of := make([][]role, len(j.Passes))
	var countings []*counting
	for _, e := range all {
		c := &counting{evaluation: e, datasets: [2]map[int]bool{{}, {}}, all: map[int]bool{}, open: map[int]*fate{}}
		countings = append(countings, c)
		e.roles(func(p *samples.Pass, as part, renewed bool) {
			n := numbers[p]
			of[n] = append(of[n], role{c, as, renewed})
		})
	}
	serial := 0
	var here []*counting
	for origin, given := range j.Each() {
		serial++
		here = here[:0]
		for i := range given {
			g := &given[i]
			for _, r := range of[g.Pass] {
				here = r.begin(serial, here)
				r.given(g, j.Passes[g.Pass], origin)
			}
		}
		for _, c := range here {
			c.end(origin, j)
		}
	}
	for _, c := range countings {
		c.finish()
	}
}

// begin with another sample; here is those that have begun with it.
func (c *counting) begin(serial int, here []*counting) []*counting {
	if c.serial == serial {
		return here
	}
	c.serial, c.asked, c.taken, c.dealt, c.chosen, c.earlier = serial, nil, c.taken[:0], false, false, false
	return append(here, c)
}

// given: a pass was given the sample.
func (r *role) given(g *samples.Given, p *samples.Pass, origin samples.Origin) {
	c := r.counting
	switch r.part {
	case asks:
		if c.asked == nil || g.Batch > c.asked.Batch {
			c.asked = g
		}
	case trains:
		c.taken = append(c.taken, *g)
		if p.Object.DatasetID != 0 && dealsAll(p) {
			c.all[origin.Dataset] = true
		}
		fallthrough
	case deals:
		c.dealt, c.chosen = true, c.chosen || r.renewed
	case later:
		c.chosen = true
	case rest:
		c.earlier = true
	}
}

// dealsAll reports whether a loader's sampler draws from all of its dataset.
func dealsAll(p *samples.Pass) bool {
	return samplers.AsksForAll(p.Object) || samplers.SharingOf(p.Object) == samplers.Replacing
}

// before is the first time that the sample was trained on before it was evaluated,
// on the rank that evaluates if it was there; nil: it was not.
func (c *counting) before(j *samples.Attribution) (first *samples.Given, mine bool) {
	for i := range c.taken {
		g := &c.taken[i]
		p, at := j.Passes[g.Pass], 0
		if c.asked != nil {
			at = c.asked.Batch
		}
		if !c.precedes(p, g.Batch, at) {
			continue
		}
		mine = mine || p.Loader.Process == c.pass.Loader.Process
		if first == nil {
			first = g
		}
	}
	return first, mine
}

// end with the sample.
func (c *counting) end(origin samples.Origin, j *samples.Attribution) {
	e := c.evaluation
	first, mine := c.before(j)
	e.end = max(e.end, origin.Index+1)
	if len(c.taken) > 0 || c.dealt {
		e.reach++
	}
	if first != nil {
		e.trained++
		if mine {
			e.own++
		}
		c.datasets[1][origin.Dataset] = true
	}
	if c.asked == nil {
		return
	}
	e.samples++
	e.asked = append(e.asked, uint32(c.serial))
	c.datasets[0][origin.Dataset] = true
	if first != nil {
		if e.leaked++; e.leaked == 1 {
			e.dataset = origin.Dataset
		}
		e.leaks = append(e.leaks, uint32(c.serial))
		e.owned = e.owned || mine
		e.in[first.Pass] = true
		if len(e.shown) < mostShown {
			e.shown = append(e.shown, leak{origin.Index, *c.asked, *first})
		}
		return
	}
	if c.earlier {
		e.left++
	}
	f := c.open[origin.Dataset]
	if f == nil {
		f = &fate{}
		c.open[origin.Dataset] = f
	}
	switch {
	case c.chosen:
		f.chosen++
	case c.dealt:
		f.dealt++
	default:
		f.other++
	}
}

// finish sums up.
func (c *counting) finish() {
	e := c.evaluation
	for dataset := range c.datasets[0] {
		e.shares = e.shares || c.datasets[1][dataset]
	}
	for dataset, f := range c.open {
		if c.all[dataset] {
			e.dealt += f.dealt + f.chosen + f.other
			continue
		}
		e.dealt += f.dealt
		e.chosen += f.chosen
	}
}

// Package draws finds out which random numbers were drawn from which
// generator in which fetch, and which of them are the same numbers.
//
// A generator's states are observed around fetches. Two states that stepping
// joins enclose raw outputs, an interval; two that it does not join have a
// re-seeding between them, and enclose nothing. Intervals lie on streams: all
// states that stepping can reach from each other. What two intervals share of
// one stream was drawn twice.
package draws

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Streams is all draws of a run, and where they lie on which stream.
type Streams struct {
	// Exhausted: the budget ended before everything was compared.
	Exhausted bool

	byPass   map[*timeline.Pass][]*Draws // by worker
	moved    map[*timeline.WorkerPass]fetchSet
	children []*Draws // by process
	searches map[*traces.Part][]search
	streams  placement
	nameless int // states of generators whose names are not in the trace
}

// OfPass is what was drawn in a pass, by worker.
func (s *Streams) OfPass(p *timeline.Pass) []*Draws { return s.byPass[p] }

// Children is what was drawn by processes that are no workers of a DataLoader:
// those of a Pool or an Executor in their tasks, others in all of their time. They
// are the process of a Worker that has no number.
func (s *Streams) Children() []*Draws { return s.children }

// ofChild makes the draws of a child process.
func (s *Streams) ofChild(t *timeline.Timeline, part *traces.Part, l *log) *Draws {
	at := slices.IndexFunc(t.Processes, func(p *timeline.Process) bool { return p.Part == part && p.Proc == l.key.proc })
	if at < 0 {
		return nil
	}
	p := t.Processes[at]
	none := &timeline.Loader{Process: p, Objects: make([]traces.Loader, 1)}
	return s.of(&timeline.WorkerPass{Number: -1, Process: p, Pass: &timeline.Pass{Loader: none}}, l, false)
}

// Of is what was drawn in the passes of a loader, by pass, then worker.
func (s *Streams) Of(l *timeline.Loader) (all []*Draws) {
	for _, p := range l.Passes {
		all = append(all, s.byPass[p]...)
	}
	return all
}

// Gap says what is missing of the draws of a loader (nil: of the whole run), or "".
func (s *Streams) Gap(ranks timeline.Ranks) string {
	nearLost, unfollowed := 0, 0
	count := func(drawn []*Draws) {
		for _, d := range drawn {
			nearLost += d.NearLost
			unfollowed += d.Unfollowed
		}
	}
	for _, l := range ranks {
		count(s.Of(l))
	}
	if ranks == nil {
		for _, drawn := range s.byPass {
			count(drawn)
		}
	}
	switch {
	case s.nameless > 0:
		return fmt.Sprintf("%d states are of generators whose names were lost", s.nameless)
	case nearLost > 0:
		return fmt.Sprintf("records were lost next to %d fetches", nearLost)
	case unfollowed > 0:
		return fmt.Sprintf("so much was drawn that %d fetches were left out of the comparison", unfollowed)
	}
	return ""
}

// resolver puts what was collected on streams.
type resolver struct {
	*Collector
	*Streams
	keys *keyStore
}

// Resolve makes the draws of every generator in every pass of every worker that
// the timeline knows. It uses up what was collected.
func (c *Collector) Resolve(t *timeline.Timeline) *Streams {
	s := &Streams{byPass: map[*timeline.Pass][]*Draws{}, moved: map[*timeline.WorkerPass]fetchSet{},
		searches: map[*traces.Part][]search{}}
	r := &resolver{Collector: c, Streams: s}
	r.placeWords()
	r.followMersenne()
	c.all(func(part *traces.Part, l *log) {
		w := t.Worker(part, l.key.proc, l.key.loader, l.key.pass, l.key.worker)
		if w == nil && l.key.loader == 0 && l.key.worker < 0 {
			if d := s.ofChild(t, part, l); d != nil {
				s.children = append(s.children, d)
			}
		}
		if w != nil {
			s.byPass[w.Pass] = append(s.byPass[w.Pass], s.of(w, l, w.Number < 0 && t.Incomplete(w.Process, "rng_state")))
		}
	})
	for _, drawn := range s.byPass {
		slices.SortStableFunc(drawn, func(a, b *Draws) int { return cmp.Compare(a.Worker.Number, b.Worker.Number) })
	}
	for part, p := range c.parts {
		for k, set := range p.moved {
			if w := t.Worker(part, k.proc, k.loader, k.pass, k.worker); w != nil {
				s.moved[w] = *set
			}
		}
		s.searches[part] = p.searches
		s.nameless += p.nameless
		s.Exhausted = s.Exhausted || p.spent
	}
	c.parts = nil
	return s
}

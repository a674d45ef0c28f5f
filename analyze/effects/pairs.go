package effects

import (
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Elsewhere reports whether the numbers that two draws have in common were drawn
// for other samples: then they belong to no sample.
func (e *Effects) Elsewhere(a, b *draws.Draws) bool {
	for f := range uint32(draws.Known) {
		x, ok := a.In(f)
		if !ok {
			continue
		}
		asked := e.fetches.Asked(a.Worker, f)
		if asked == 0 {
			return false
		}
		for g := range uint32(draws.Known) {
			if y, ok := b.In(g); ok && x.Overlaps(y) {
				if other := e.fetches.Asked(b.Worker, g); other != 0 && other != asked {
					return true
				}
			}
		}
	}
	return false
}

// order finds the generators of a stream from which two workers of one pass draw
// the same numbers one behind the other, the higher the number of the worker the
// further: for all samples, before each takes its share of them. Numbers that are
// drawn for a worker's own samples are as many in each.
func (e *Effects) order(l *timeline.Loader) {
	not := map[draws.Key]bool{}
	for _, p := range l.Passes {
		drawn := e.streams.OfPass(p) // by worker
		for i, a := range drawn {
			for _, b := range drawn[i+1:] {
				if k := a.Slot.Key(); k == b.Slot.Key() && a.Worker != b.Worker {
					ahead, behind := stagger(a, b)
					e.orders[k] = e.orders[k] || ahead >= 2 && behind == 0
					if behind > 0 {
						not[k] = true
					}
				}
			}
		}
	}
	for k := range not {
		delete(e.orders, k)
	}
}

// stagger counts the fetches after which b has drawn further on a stream than a,
// and those after which it has not come so far.
func stagger(a, b *draws.Draws) (ahead, behind int) {
	for f := range uint32(draws.Known) {
		x, ok := a.In(f)
		y, and := b.In(f)
		switch {
		case !ok || !and || x.Stream != y.Stream:
		case x.To > y.To:
			behind++
		case x.To < y.To:
			ahead++
		}
	}
	return ahead, behind
}

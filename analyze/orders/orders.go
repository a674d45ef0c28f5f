// Package orders is what the rules about the order of samples have in common:
// the order of each pass, who decided on it, and which passes of one training
// went through the data in one and the same order.
package orders

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is what the rules compare. Which passes are of one training is known by
// the optimizers.
var Source = &collect.Source[Orders]{
	Name:  "orders",
	Proof: []string{"optimizer"},
	Uses:  []collect.Any{timeline.Source, batches.Requested},
	New:   func() collect.Collector[Orders] { return collector{} },
}

// Orders is those of each loader, on each rank.
type Orders map[*timeline.Loader]*Loader

// Of a loader on all its ranks, by rank.
func (o Orders) Of(ranks timeline.Ranks) (list []*Loader) {
	for _, l := range ranks {
		list = append(list, o[l])
	}
	return list
}

// Loader is what may be compared of a loader on one rank.
type Loader struct {
	*timeline.Loader
	Trainings [][]*Pass // that may be compared, by training
	Few       bool      // passes with fewer than batches.Enough different samples, or one batch, were left out
	Odd       int       // passes whose order is not known
	Eval      bool      // all its passes are evaluations

	epochs map[int64]bool // of the sampler, in passes that are left out
	lost   bool           // the begin of a pass is
}

// Pass is one pass and its order.
type Pass struct {
	*timeline.Pass
	batches.Beginning // what the loop took

	Object   *traces.Loader
	Promise  samplers.Order
	Epoch    int64 // of the sampler as the pass began; -1: it has none
	All      bool  // the loop took all that there was
	Sequence *batches.Sequence
}

// collector has no rows of its own.
type collector struct{}

func (collector) Add(traces.Batch)                {}
func (collector) Merge(collect.Collector[Orders]) {}

func (collector) Build(e *collect.Evidence) Orders {
	requests := collect.Of(e, batches.Requested)
	orders := Orders{}
	for _, l := range collect.Of(e, timeline.Source).Loaders {
		orders[l] = loader(l, requests)
	}
	return orders
}

func loader(l *timeline.Loader, requests batches.ByPass[batches.Requests]) *Loader {
	o := &Loader{Loader: l, Eval: true, epochs: map[int64]bool{}}
	for _, p := range l.Passes {
		if p.Role != timeline.Eval {
			o.Eval = false
		}
		o.lost = o.lost || p.Began == nil
		if one := o.pass(p, &requests.Of(p).Sequence); one != nil {
			o.add(one)
		} else if p.Began != nil {
			o.epochs[p.Began.SamplerEpoch] = true
		}
	}
	return o
}

// pass is one that may be compared, or nil.
func (o *Loader) pass(p *timeline.Pass, s *batches.Sequence) *Pass {
	if p.Abandoned || p.Role != timeline.Train && (p.Role == timeline.Eval || p.Blind) {
		return nil
	}
	taken, known := s.Beginning(min(p.Delivered, s.Batches()))
	switch {
	case p.Began == nil || s.Odd || s.Batches() == 0 || s.Batches() < p.Delivered || !known:
		o.Odd++
		return nil
	case taken.Distinct < batches.Enough || taken.Batches < 2:
		o.Few = true
		return nil
	}
	object := p.DataLoader()
	return &Pass{Pass: p, Beginning: taken, Object: object, Promise: samplers.OrderOf(object), Epoch: p.Began.SamplerEpoch,
		All: p.Exhausted && s.Batches() == p.Delivered, Sequence: s}
}

// add a pass to those of its training.
func (o *Loader) add(p *Pass) {
	for i, training := range o.Trainings {
		if slices.ContainsFunc(training, func(q *Pass) bool { return p.SameTraining(q.Pass) }) {
			o.Trainings[i] = append(training, p)
			return
		}
	}
	o.Trainings = append(o.Trainings, []*Pass{p})
}

// Frozen reports whether the sampler has an epoch and no pass of a training saw
// another one, nor any pass that is not compared.
func (o *Loader) Frozen(training []*Pass) bool {
	epoch := training[0].Epoch
	for other := range o.epochs {
		if other != epoch {
			return false
		}
	}
	return epoch >= 0 && len(training) > 1 && !o.lost && !slices.ContainsFunc(training, func(p *Pass) bool { return p.Epoch != epoch })
}

// Unfit says why no rule about orders is about a loader, or "".
func Unfit(list []*Loader) string {
	switch {
	case slices.ContainsFunc(list, (*Loader).Iterable):
		return "an IterableDataset has no sampler"
	case !slices.ContainsFunc(list, func(o *Loader) bool { return !o.Eval }):
		return "used for evaluation only"
	}
	return ""
}

// Nothing says why no two orders of a loader could be compared, or "" if some
// were: n passes, on all ranks.
func Nothing(list []*Loader) (reason string, n int) {
	passes, odd, few := 0, false, false
	for _, o := range list {
		for _, training := range o.Trainings {
			if len(training) > 1 {
				n += len(training)
			}
		}
		passes = max(passes, len(o.Passes))
		odd, few = odd || o.Odd > 0, few || o.Few
	}
	switch {
	case odd:
		return "the order of some passes is not known: the keys of their samples are no integers, or rows are lost", n
	case n > 0:
		return "", n
	case passes < 2:
		return "one pass", n
	case few:
		return fmt.Sprintf("passes of one batch, or of fewer than %d different samples, of which two shuffled orders are alike by chance",
			batches.Enough), n
	}
	return "no two passes of one training that ran to their end", n
}

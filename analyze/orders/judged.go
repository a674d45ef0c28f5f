package orders

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Enough is how many different samples a pass must have before a repeated order
// says anything: 16 can be put in 16! = 2.1e13 orders, so that of a thousand
// right shuffles (500,000 pairs) two are alike in one of 4e7 trainings.
const Enough = 16

// Pass is one pass and its order.
type Pass struct {
	*timeline.Pass
	Object   *traces.Loader
	Contract Promise
	Epoch    int64 // of the sampler as the pass began; -1: it has none
	Begin    traces.Pass
	Sequence *Sequence
	Told     []traces.SetEpoch // calls of its sampler's set_epoch, of all times

	read mark // what the loop took
	all  bool // that is all there was
}

// Samples is how many the loop was given.
func (p *Pass) Samples() int { return p.read.samples }

// Batches is how many they were in.
func (p *Pass) Batches() int { return p.read.batches }

// All reports whether that is all there was.
func (p *Pass) All() bool { return p.all }

// Straight reports whether the order is 0, 1, 2, ...
func (p *Pass) Straight() bool { return p.read.jumps == 0 }

// Refs are the rows where the pass begins.
func (p *Pass) Refs() []finding.Ref {
	part := p.Loader.Process.Part.Name
	return []finding.Ref{{Part: part, Table: "pass", Seq: p.Begin.Seq}, {Part: part, Table: "batch_put", Seq: p.Sequence.put}}
}

// Group is one loader on all ranks that have it.
type Group struct {
	ID      int
	Loaders timeline.Ranks // by rank
	Ranks   []*Rank        // the same
}

// Rank is the passes of one rank.
type Rank struct {
	Loader    *timeline.Loader
	Trainings [][]*Pass // that may be compared, by training
	Few       bool      // passes with fewer than Enough different samples, or one batch, were left out
	Odd       int       // passes whose order is not known
	Eval      bool      // all its passes are evaluations

	epochs map[int64]bool // of the sampler, in passes that are left out
	lost   bool           // the begin of a pass is
}

// Groups are the loaders.
func (o *Orders) Groups(t *timeline.Timeline) []*Group {
	var groups []*Group
	for _, ranks := range t.ByLoader() {
		g := &Group{ID: ranks.ID(), Loaders: ranks}
		for _, l := range ranks {
			g.Ranks = append(g.Ranks, o.rank(l))
		}
		groups = append(groups, g)
	}
	return groups
}

// Iterable reports whether the dataset yields its samples in an order of its own.
func (g *Group) Iterable() bool {
	return slices.ContainsFunc(g.Loaders, func(l *timeline.Loader) bool { return l.Iterable() })
}

// Everywhere reports whether all ranks are so.
func (g *Group) Everywhere(is func(*Rank) bool) bool {
	return !slices.ContainsFunc(g.Ranks, func(r *Rank) bool { return !is(r) })
}

// Somewhere reports whether a rank is so.
func (g *Group) Somewhere(is func(*Rank) bool) bool { return slices.ContainsFunc(g.Ranks, is) }

// Gap says what is missing of what the rules read.
func (g *Group) Gap(t *timeline.Timeline) string {
	return g.Loaders.Distinct(func(l *timeline.Loader) string { return t.Losses(l, Tables) })
}

func (o *Orders) rank(l *timeline.Loader) *Rank {
	r := &Rank{Loader: l, Eval: true, epochs: map[int64]bool{}}
	rows := o.parts[l.Process.Part]
	for _, tp := range l.Passes {
		if tp.Role != timeline.Eval {
			r.Eval = false
		}
		if rows == nil {
			continue
		}
		key := passKey{l.Process.Proc, tp.Object, tp.Recorded}
		begin, begun := rows.begins[key]
		r.lost = r.lost || !begun
		if tp.Abandoned || tp.Role != timeline.Train && (tp.Role == timeline.Eval || tp.Blind) {
			r.epochs[begin.SamplerEpoch] = true
			continue
		}
		s := rows.sequences[key]
		if s == nil || s.Odd || !begun || s.now.batches < tp.Delivered {
			r.Odd++
			r.epochs[begin.SamplerEpoch] = true
			continue
		}
		p := &Pass{Pass: tp, Object: tp.DataLoader(), Epoch: begin.SamplerEpoch, Begin: begin, Sequence: s}
		p.Contract = contract(p.Object)
		p.Told = rows.told[samplerKey{l.Process.Proc, p.Object.SamplerID}]
		p.all = tp.Exhausted && s.now.batches == tp.Delivered
		var ok bool
		if p.read, ok = s.at(min(tp.Delivered, s.now.batches), s.stride); !ok {
			r.Odd++
			r.epochs[p.Epoch] = true
			continue
		}
		if p.read.distinct < Enough || p.read.batches < 2 {
			r.Few = true
			r.epochs[p.Epoch] = true
			continue
		}
		r.add(p)
	}
	return r
}

// add a pass to those of its training.
func (r *Rank) add(p *Pass) {
	for i, training := range r.Trainings {
		if slices.ContainsFunc(training, func(q *Pass) bool { return p.SameTraining(q.Pass) }) {
			r.Trainings[i] = append(training, p)
			return
		}
	}
	r.Trainings = append(r.Trainings, []*Pass{p})
}

// Frozen reports whether the sampler has an epoch and no pass of a training saw
// another one, nor any pass that is not compared.
func (r *Rank) Frozen(training []*Pass) bool {
	epoch := training[0].Epoch
	for other := range r.epochs {
		if other != epoch {
			return false
		}
	}
	return epoch >= 0 && len(training) > 1 && !r.lost && !slices.ContainsFunc(training, func(p *Pass) bool { return p.Epoch != epoch })
}

// Repeat is a pass in the order of an earlier one.
type Repeat struct {
	First, Again *Pass
	Samples      int  // that were compared
	All          bool // both to their ends; else only the samples that both loops took
	Shuffled     bool // the order looks like a shuffled one
}

// SameData reports whether both passes are over one dataset object. A DataLoader
// that is made anew for each pass may be over other data each time.
func (r Repeat) SameData() bool {
	a, b := r.First.Object, r.Again.Object
	return a == b || a.DatasetID != 0 && a.DatasetID == b.DatasetID
}

// Repeats are the passes of one training that go through the data as an earlier
// one did.
func Repeats(training []*Pass) []Repeat {
	return RepeatsThat(training, func(Repeat) bool { return true })
}

// RepeatsThat are the same, each with the first earlier pass of its order; or
// with the latest, if the first one does not count and the latest does.
func RepeatsThat(training []*Pass, counts func(Repeat) bool) []Repeat {
	var out []Repeat
	for i, q := range training {
		for k, p := range training[:i] {
			first, same := compare(p, q)
			if !same {
				continue
			}
			out = append(out, first)
			if counts(first) {
				break
			}
			for _, p := range slices.Backward(training[k+1 : i]) {
				if latest, same := compare(p, q); same {
					if counts(latest) {
						out[len(out)-1] = latest
					}
					break
				}
			}
			break
		}
	}
	return out
}

// Shuffled are the repeats of an order that looks like a shuffled one.
func Shuffled(repeats []Repeat) []Repeat {
	return slices.DeleteFunc(slices.Clone(repeats), func(r Repeat) bool { return !r.Shuffled })
}

func compare(p, q *Pass) (Repeat, bool) {
	if p.all && q.all {
		return Repeat{p, q, p.read.samples, true, shuffled(p.read)}, p.read.samples == q.read.samples && p.read.digest == q.read.digest
	}
	if !p.all && p.Delivered < q.Delivered {
		return Repeat{}, false // a warm-up, a search for the learning rate
	}
	n, stride := min(p.read.batches, q.read.batches), max(p.Sequence.stride, q.Sequence.stride)
	for {
		a, fits := p.Sequence.at(n, stride)
		b, too := q.Sequence.at(n, stride)
		if !fits || !too || min(a.batches, b.batches) < 2 || min(a.distinct, b.distinct) < Enough {
			return Repeat{}, false
		}
		if n = min(a.batches, b.batches); a.batches == b.batches {
			return Repeat{p, q, a.samples, p.Delivered == q.Delivered && p.all == q.all, shuffled(a)}, a.samples == b.samples && a.digest == b.digest
		}
	}
}

// shuffled tells a shuffled order from one that climbs: a shuffle descends at
// every second step, and at fewer than every fourth in one of 200 of 16 samples,
// whose descents are (n-1)/2 with a variance of (n+1)/12. A sequential order
// descends only where padding begins.
func shuffled(m mark) bool { return 4*m.descents >= m.samples-1 }

// Shuffled reports whether the order of a pass looks like a shuffled one.
func (p *Pass) Shuffled() bool { return shuffled(p.read) }

// RankNames names the ranks, or is "" if there is no more than one.
func (g *Group) RankNames(ranks []int) string {
	if len(g.Loaders) < 2 || len(ranks) == 0 {
		return ""
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	if len(ranks) == 1 {
		return fmt.Sprintf(", on rank %d", ranks[0])
	}
	names := make([]string, len(ranks))
	for i, r := range ranks {
		names[i] = fmt.Sprint(r)
	}
	if len(names) > 16 {
		return fmt.Sprintf(", on %d ranks", len(names))
	}
	return ", on ranks " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Loader of a finding.
func (g *Group) Loader() finding.Loader {
	return finding.Loader{ID: g.ID, At: g.Loaders[0].At(), Role: string(g.Loaders.Role())}
}

// Nothing says why no two orders of a loader could be compared, or "" if some
// were: n passes, on all ranks.
func (g *Group) Nothing() (reason string, n int) {
	for _, r := range g.Ranks {
		for _, training := range r.Trainings {
			if len(training) > 1 {
				n += len(training)
			}
		}
	}
	passes := 0
	for _, l := range g.Loaders {
		passes = max(passes, len(l.Passes))
	}
	switch {
	case g.Somewhere(func(r *Rank) bool { return r.Odd > 0 }):
		return "the order of some passes is not known: the keys of their samples are no integers, or rows are lost", n
	case n > 0:
		return "", n
	case passes < 2:
		return "one pass", n
	case g.Somewhere(func(r *Rank) bool { return r.Few }):
		return fmt.Sprintf("passes of one batch, or of fewer than %d different samples, of which two shuffled orders are alike by chance", Enough), n
	}
	return "no two passes of one training that ran to their end", n
}

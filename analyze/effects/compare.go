package effects

import (
	"github.com/dptrace/dptrace/analyze/evidence/contents"
	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// read is one sample that a worker read.
type read struct {
	*contents.Sample
	by *timeline.WorkerPass
}

// identity of a sample in two fetches: its index, or the label that no other one has.
type identity struct {
	index int64
	label digests.Sum
}

// compare each sample of a loader with the time before when it was fetched.
func (e *Effects) compare(l *timeline.Loader) {
	drawn := map[*timeline.WorkerPass][]*draws.Draws{}
	for _, d := range e.streams.Of(l) {
		drawn[d.Worker] = append(drawn[d.Worker], d)
	}
	named := l.Iterable() && e.labelled(l)
	if l.Iterable() && !named {
		return
	}
	last := map[identity]read{}
	for _, p := range l.Passes {
		for _, w := range p.Workers {
			list := e.fetches.Samples(w)
			for i := range list {
				now := read{&list[i], w}
				id := identity{index: now.Index}
				if now.Index < 0 {
					if id.label = now.Meta; !named || !now.Labelled() {
						continue
					}
				}
				if before, ok := last[id]; ok {
					e.pair(before, now, drawn)
				}
				last[id] = now
			}
		}
	}
}

// pair of one sample in two fetches.
func (e *Effects) pair(a, b read, drawn map[*timeline.WorkerPass][]*draws.Draws) {
	same, ok := a.Same(&b.Digest)
	if !ok || a.by == b.by && a.Fetch == b.Fetch {
		return
	}
	row, rowed := a.SameRow(&b.Digest) // what the program's collate function has made of it
	same = same && (row || !rowed)
	e.Compared++
	if same {
		e.Alike++
	} else if !e.streams.Moved(a.by, a.Fetch) && !e.streams.Moved(b.by, b.Fetch) {
		e.Hidden++
	}
	for _, d := range drawn[a.by] {
		x, ok := d.In(a.Fetch)
		if !ok {
			continue
		}
		for _, o := range drawn[b.by] {
			if o.Slot.Key() != d.Slot.Key() {
				continue
			}
			if y, ok := o.In(b.Fetch); ok && !x.Overlaps(y) {
				k := e.Of(d.Slot.Key())
				switch {
				case !same:
					k.Other++
				case rowed:
					k.Rows++
					fallthrough
				default:
					k.Alike++
				}
			}
		}
	}
}

// enoughLabels is how many samples of a worker's pass must have labels for them
// to be taken for names of samples.
const enoughLabels = 16

// labelled reports whether the labels (strings and integers) of a stream's
// samples name them: no worker reads one twice in a pass, and nine of ten come
// again in the next pass.
func (e *Effects) labelled(l *timeline.Loader) bool {
	var before map[digests.Sum]bool
	again := false
	for _, p := range l.Passes {
		now, n := map[digests.Sum]bool{}, 0
		for _, w := range p.Workers {
			mine := map[digests.Sum]bool{}
			for _, s := range e.fetches.Samples(w) {
				if !s.Labelled() || mine[s.Meta] {
					return false
				}
				mine[s.Meta], now[s.Meta] = true, true
				n++
			}
		}
		if n < enoughLabels {
			return false
		}
		if before != nil {
			if 10*common(before, now) < 9*min(len(before), len(now)) {
				return false
			}
			again = true
		}
		before = now
	}
	return again
}

func common(a, b map[digests.Sum]bool) (n int) {
	for s := range a {
		if b[s] {
			n++
		}
	}
	return n
}

// recur counts, for each generator, the contents of a stream's pass that came
// before, in a pass in which other numbers were drawn from it.
func (e *Effects) recur(l *timeline.Loader) {
	var before map[digests.Sum]bool
	var last *timeline.Pass
	for _, p := range l.Passes {
		now := map[digests.Sum]bool{}
		for _, w := range p.Workers {
			for _, s := range e.fetches.Samples(w) {
				if s.Whole() {
					now[s.Content] = true
				}
			}
		}
		if n := common(before, now); last != nil && n >= enoughAlike && 10*n >= 9*min(len(before), len(now)) {
			for k := range e.apart(last, p) {
				e.fixed[k] += n
			}
		}
		before, last = now, p
	}
}

// apart is the generators from which both of two passes drew data, and no number twice.
func (e *Effects) apart(p, q *timeline.Pass) map[draws.Key]bool {
	sets, found := map[draws.Key]*draws.IntervalSet{}, map[draws.Key]bool{}
	for _, d := range e.streams.OfPass(p) {
		if d.Data() {
			k := d.Slot.Key()
			if sets[k] == nil {
				sets[k] = &draws.IntervalSet{}
			}
			sets[k].Add(d)
		}
	}
	for _, d := range e.streams.OfPass(q) {
		k := d.Slot.Key()
		if !d.Data() || sets[k] == nil {
			continue
		}
		shared := sets[k].Shares(d)
		if at, ok := found[k]; !ok {
			found[k] = !shared
		} else {
			found[k] = at && !shared
		}
	}
	for k, ok := range found {
		if !ok {
			delete(found, k)
		}
	}
	return found
}

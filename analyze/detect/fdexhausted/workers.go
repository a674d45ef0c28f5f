package fdexhausted

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// growing is the worker of a loader whose descriptors grow towards its limit and
// reach it first; nil: none does. One that ends with its pass is none, if the pass
// came to its end or another began: the next worker begins anew.
func (x *filled) growing(l *timeline.Loader) (soonest *filled) {
	for _, w := range l.WorkerProcesses {
		if w.Process == nil || len(w.Workers) == 1 && !persistent(w) && (w.Workers[0].Pass.Exhausted || len(l.Passes) > 1) {
			continue
		}
		y := *x
		y.grower = w
		y.growth = growthOf(x.counts.points(w.Process, x.main, nil))
		y.last = x.lastCount(w.Process)
		if y.fills() && !y.stopped() && (soonest == nil || y.left() < soonest.left()) {
			soonest = &y
		}
	}
	return soonest
}

func persistent(w *timeline.WorkerProcess) bool {
	for i := range w.Loader.Objects {
		if o := &w.Loader.Objects[i]; o.Loader == w.Object {
			return o.Persistent
		}
	}
	return false
}

// later is what came after the first pass of a worker that grows.
type later struct {
	counts, batches int
	share           float64 // of the batches
	pace            float64 // as a share of the pace of all
}

// slowed is a pace that is not that of all: the growth ends.
const slowed = 0.5

func (x *filled) later() (l later) {
	g, ws := x.growth, x.grower.Workers
	if len(ws) < 2 {
		return l
	}
	before := g.first
	for _, p := range x.counts.points(x.grower.Process, x.main, nil) {
		if p.batches <= x.counts.batches(x.main, ws[1].Pass.Begin) {
			before = p
		} else {
			l.counts++
		}
	}
	l.batches = g.last.batches - before.batches
	l.share = float64(l.batches) / float64(g.batches())
	l.pace = float64(g.last.open-before.open) / float64(max(l.batches, 1)) / g.perBatch()
	return l
}

// goesOn reports whether the growth of a worker went on in passes after its first:
// the files of a dataset that are opened when they are needed, and stay open, are
// all open after that.
func (x *filled) goesOn() bool {
	const least = 1. / 3 // of its batches, after its first pass
	if x == nil {
		return false
	}
	l := x.later()
	return l.share >= least && l.pace >= slowed
}

// stopped reports whether the growth was over after the first pass.
func (x *filled) stopped() bool {
	l := x.later()
	return l.counts >= 2 && l.pace < slowed
}

// noPassToCompare says what is known of a growth that may be over after a pass.
func (x *filled) noPassToCompare() string {
	g := x.growth
	return fmt.Sprintf("the descriptors of worker %d rose from %s to %s of %s in %s, and whether they rise on after its first pass "+
		"was not seen", x.grower.Number, words.Number(g.first.open), words.Number(g.last.open), words.Number(x.last.Limit),
		words.Count(g.batches(), "batch"))
}

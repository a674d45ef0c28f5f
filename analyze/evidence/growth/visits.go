package growth

import (
	"github.com/dptrace/dptrace/analyze/hash"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// mostKept is how many indices of a worker are kept, those whose hash is low: to
// tell which share of what it is asked for it was asked for before, enough.
const mostKept = 1024

// shareKey is one worker of a DataLoader object, in all passes.
type shareKey struct {
	part         *traces.Part
	proc, loader uint32
	worker       int32
}

// asked counts indices that are kept, of one pass.
type asked struct{ all, again, fresh int } // again: those of an earlier pass; fresh: those never asked for before

// visits is what one worker was asked for.
type visits struct {
	mask   uint64 // of hashes: those that are kept have these bits 0
	seen   map[int64]uint32
	passes map[uint32]*asked
	keyed  bool
}

// visit takes a batch that a worker was asked for.
func (g *Growth) visit(part *traces.Part, r *traces.BatchPut) {
	k := shareKey{part, r.Proc, r.Loader, r.Worker}
	v := g.visits[k]
	if v == nil {
		v = &visits{seen: map[int64]uint32{}, passes: map[uint32]*asked{}}
		g.visits[k] = v
	}
	v.keyed = v.keyed || r.Keys != ""
	n := v.passes[r.Pass]
	if n == nil {
		n = &asked{}
		v.passes[r.Pass] = n
	}
	for _, index := range r.Indices {
		if hash.Mix(uint64(index))&v.mask != 0 {
			continue
		}
		n.all++
		if pass, known := v.seen[index]; known && pass < r.Pass {
			n.again++
		} else if !known {
			v.seen[index] = r.Pass
			n.fresh++
		}
	}
	for len(v.seen) > mostKept {
		v.mask = 2*v.mask + 1
		for index := range v.seen {
			if hash.Mix(uint64(index))&v.mask != 0 {
				delete(v.seen, index)
			}
		}
	}
}

// Again is the share of the samples of a pass that the same worker, or without
// workers the main process, had been asked for in earlier passes, and fresh the
// share that it had never been asked for, not in this pass either. known is false
// of what has no indices.
func (g *Growth) Again(pass *timeline.Pass, worker int) (share, fresh float64, known bool) {
	v := g.visits[shareKey{pass.Loader.Process.Part, pass.Loader.Process.Proc, pass.Object, int32(worker)}]
	if v == nil || v.keyed || v.passes[pass.Recorded] == nil || v.passes[pass.Recorded].all == 0 {
		return 0, 0, false
	}
	n := v.passes[pass.Recorded]
	return float64(n.again) / float64(n.all), float64(n.fresh) / float64(n.all), true
}

package timeline

import (
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// uses is what the training loop did with the deliveries of one pass, as far as
// it is watched. Of each delivery a few bits are kept.
//
// What happens between two calls of next() is done with the batch that came
// last. Where several loaders are advanced in one step, a backward call uses the
// last batches of all of them: it is shared by those that came before.
type uses struct {
	n      int    // deliveries
	own    bitset // a step used gradients of a backward call right after it
	shared bitset // or of one after another loader's delivery, before the next of this loader
	burst  bitset // or several were taken at once, and there were as many backward calls after the last of them
	back   bitset // a backward call right after it, whatever became of its gradients
	off    bitset // grad mode was off at next() or was switched off right after it
	eval   bitset // a module that is trained was in evaluation mode
	alone  bitset // a batch norm in training mode was given one row
	rows   counts
	times  moments // of the steps

	late      bool // a step used gradients of a backward call after all had been delivered
	lateNS    int64
	lateOff   bool
	lateEval  bool
	lateAlone bool

	open    bool // what is done with the last delivery is not over
	back0   bool // it had a backward call right after it
	zeros   int  // deliveries before the last one with nothing done with them
	others  int  // of other loaders, with a backward call, since the last delivery
	pairs   int  // deliveries that shared the backward call of one other delivery
	several int  // or of several: they are not of their steps
	stepped bool // some delivery is in own
	joined  bool // its first delivery came right after a step on another loader's

	optimizers  []uint32 // whose steps those were
	first, last uint32   // restarts

	unseen   bool   // what was done with the last delivery is not in the trace
	trained  bitset // settled
	shifted  bool   // the loop is one delivery behind: it looks ahead
	doubtful bool   // it shares backward calls, and was used with grad mode off before them
}

// waiting is a backward call whose step is still to come.
type waiting struct {
	of          *passRows
	first, last int    // deliveries
	from, to    uint64 // backward calls
	how         how
}

type how int

const (
	inOwn how = iota
	inShared
	inBurst
	inLate
)

// loop is what is known of a process's training loop between two rows.
type loop struct {
	unwatched bool // some row is of an older trace, or gradients come from elsewhere
	rows      int
	backwards uint64
	recent    *passRows // that delivered last
	after     *passRows // that came to its end last, and nothing was delivered since
	ended     bool      // some pass has come to its end since the last delivery
	open      []*passRows
	waiting   []waiting
}

const (
	// mostWaiting backward calls wait for their step, mostShared passes for the next
	// of their deliveries, at the same time.
	mostWaiting = 4096
	mostShared  = 64
	// mostOptimizers of a pass are kept.
	mostOptimizers = 256
)

// watched reports whether all of it is known.
func (lp *loop) watched() bool { return lp.rows > 0 && !lp.unwatched }

// next takes a row: what was done since the one before, then its delivery.
func (lp *loop) next(ps *passRows, r *traces.BatchNext) {
	lp.rows++
	if !r.Watched {
		lp.unwatched = true
	}
	if lp.unwatched {
		return
	}
	lp.since(r)
	lp.steps(r)
	if r.Status == "exit" {
		lp.recent, lp.after = nil, nil
		return
	}
	lp.deliver(ps, r)
}

// since the row before.
func (lp *loop) since(r *traces.BatchNext) {
	from := lp.backwards
	to := max(r.Backwards, from)
	lp.backwards = to
	switch {
	case lp.recent != nil:
		lp.recent.uses.used(r)
		if to > from {
			lp.backward(from, to)
		}
	case lp.after != nil:
		u := &lp.after.uses
		u.lateOff, u.lateEval, u.lateAlone = u.lateOff || r.GradOff, u.lateEval || r.Evaluating, u.lateAlone || r.Alone
		if to > from {
			lp.wait(waiting{lp.after, u.n - 1, u.n - 1, from, to, inLate})
			if u.zeros > 0 && to-from >= uint64(u.zeros) {
				lp.wait(waiting{lp.after, u.n - u.zeros, u.n - 1, from, to, inBurst})
			}
			lp.share(nil, from, to)
		}
	}
}

// used notes what else was done with the last delivery.
func (u *uses) used(r *traces.BatchNext) {
	i := u.n - 1
	if r.GradOff {
		u.off.add(i)
	}
	if r.Evaluating {
		u.eval.add(i)
	}
	if r.Alone {
		u.alone.add(i)
	}
}

// backward calls after the last delivery.
func (lp *loop) backward(from, to uint64) {
	ps := lp.recent
	u := &ps.uses
	i := u.n - 1
	u.back.add(i)
	u.back0 = true
	lp.wait(waiting{ps, i, i, from, to, inOwn})
	if u.zeros > 0 && to-from > uint64(u.zeros) {
		lp.wait(waiting{ps, i - u.zeros, i - 1, from, to, inBurst})
	}
	lp.share(ps, from, to)
}

// share a backward call with the last deliveries of all other loaders.
func (lp *loop) share(ps *passRows, from, to uint64) {
	for _, o := range lp.open {
		if o != ps {
			o.uses.others++
			lp.wait(waiting{o, o.uses.n - 1, o.uses.n - 1, from, to, inShared})
		}
	}
}

func (lp *loop) wait(w waiting) {
	if len(lp.waiting) == mostWaiting {
		lp.waiting = append(lp.waiting[:0], lp.waiting[mostWaiting/2:]...)
	}
	lp.waiting = append(lp.waiting, w)
}

// steps use the gradients of backward calls.
func (lp *loop) steps(r *traces.BatchNext) {
	if r.GradsTo <= r.GradsFrom {
		return
	}
	left := lp.waiting[:0]
	for _, w := range lp.waiting {
		switch {
		case w.to <= r.GradsFrom: // thrown away
		case w.from < r.GradsTo:
			w.of.trainedOn(w, r)
		default:
			left = append(left, w)
		}
	}
	lp.waiting = left
}

func (ps *passRows) trainedOn(w waiting, r *traces.BatchNext) {
	u := &ps.uses
	at := r.CallNS
	if at <= 0 {
		at = r.TsNS
	}
	if w.how == inLate {
		u.late, u.lateNS = true, at
	} else {
		in := map[how]*bitset{inOwn: &u.own, inShared: &u.shared, inBurst: &u.burst}[w.how]
		for i := w.first; i <= w.last; i++ {
			in.add(i)
			u.times.set(i, at)
		}
	}
	u.stepped = u.stepped || w.how == inOwn
	if len(u.optimizers) < mostOptimizers && !slices.Contains(u.optimizers, r.Optimizer) {
		u.optimizers = append(u.optimizers, r.Optimizer)
	}
}

// deliver takes what next() gave.
func (lp *loop) deliver(ps *passRows, r *traces.BatchNext) {
	u := &ps.uses
	u.close()
	if r.Status != "ok" {
		lp.ended = true
		if lp.recent == ps || lp.recent == nil {
			lp.recent, lp.after = nil, ps
		}
		lp.open = slices.DeleteFunc(lp.open, func(o *passRows) bool { return o == ps })
		if u.n == 0 || r.Status != "stop" {
			lp.after = nil
		}
		if u.n == 0 {
			u.lateOff, u.lateEval = !r.Grad, r.Evaluating
		}
		return
	}
	u.last = r.Restarts
	if u.n == 0 {
		u.first = r.Restarts
		u.joined = lp.recent != nil && !lp.ended && lp.recent.uses.stepped && lp.recent.uses.back0
	}
	if !r.Grad {
		u.off.add(u.n)
	}
	u.rows.add(r.Rows)
	u.n++
	u.open = true
	lp.recent, lp.after, lp.ended = ps, nil, false
	if !slices.Contains(lp.open, ps) {
		if len(lp.open) == mostShared {
			lp.open = slices.Delete(lp.open, 0, 1)
		}
		lp.open = append(lp.open, ps)
	}
}

// close the time of the last delivery.
func (u *uses) close() {
	if !u.open {
		return
	}
	switch i := u.n - 1; {
	case u.back0 || u.others > 0 || u.off.has(i):
		u.zeros = 0
	default:
		u.zeros++
	}
	switch {
	case u.others == 1 && !u.back0:
		u.pairs++
	case u.others > 1 && !u.back0:
		u.several++
	}
	u.open, u.back0, u.others = false, false, 0
}

// settle what was trained on, once all is known of the pass.
func (u *uses) settle() {
	u.close()
	if u.n == 0 {
		return
	}
	own := u.own.count()
	switch {
	case u.n > 1 && u.late && !u.back.has(0) && own > 0 && 10*own >= 9*(u.n-1):
		u.shifted = true
		u.trained = u.own.earlier(u.n, true)
		u.off, u.eval, u.alone = u.off.earlier(u.n, u.lateOff), u.eval.earlier(u.n, u.lateEval), u.alone.earlier(u.n, u.lateAlone)
		u.back = u.back.earlier(u.n, true)
	case own == 0 && u.late && u.off.count() == 0 && u.eval.count() == 0 && u.shared.count() == 0:
		for i := range u.n { // one step for the losses of all
			u.trained.add(i)
			u.times.set(i, u.lateNS)
		}
	case 4*own < 3*u.n && 10*(own+u.burst.andNot(u.own).count()) >= 9*u.n:
		u.trained = u.own.or(u.burst)
	default:
		u.trained = u.own
	}
	shared := u.shared.andNot(u.own)
	if u.several > u.pairs || 2*(own+shared.count()) < u.n {
		return // of the steps of another loader, or no more than the last delivery before the loop was left
	}
	if doubtful := shared.and(u.off.or(u.eval)); 2*doubtful.count() > shared.count() {
		u.doubtful = true
		return
	}
	u.trained = u.trained.or(shared)
}

// role of a pass by what was done with its deliveries.
func (u *uses) role() Role {
	held := u.off.or(u.eval)
	switch {
	case u.trained.count() > 0:
		return Train
	case u.n == 0:
		if u.lateOff || u.lateEval {
			return Eval
		}
		return Unknown
	case u.doubtful && !u.joined && 2*u.eval.count() < u.n:
		return Unknown // looked at between the steps, or by a teacher in each of them
	case held.count() < u.n-1 && 10*held.count() < 9*u.n, held.count() == 0:
		return Unknown
	case 2*u.back.andNot(u.eval).count() > u.n:
		return Unknown // gradients were computed, and thrown away
	}
	return Eval
}

// Watched reports whether it is known what the training loop did with the
// deliveries of the pass: it is not where the trace is an older one, or where
// gradients are computed by anything but torch's backward.
func (p *Pass) Watched() bool { return p.uses != nil }

// Trained reports whether an optimizer's step used gradients of a backward call
// on the i-th delivery of the pass. Where the pass is not watched: whether a step
// followed it.
func (p *Pass) Trained(i int) bool {
	switch {
	case p.uses != nil:
		return p.uses.trained.has(i)
	case p.stats != nil:
		return p.Role == Train && p.stats.followed.has(i)
	}
	return false
}

// TrainedAt is when that step had been taken, at the latest: the loop asked for
// the next batch. 0: there was none.
func (p *Pass) TrainedAt(i int) int64 {
	u := p.uses
	switch {
	case !p.Trained(i):
		return 0
	case u == nil:
		return p.stats.steppedAt(i)
	case u.shifted && i == u.n-1:
		return u.lateNS
	case u.shifted:
		return u.times.get(i + 1)
	}
	return u.times.get(i)
}

// Rows is the first dimension of the i-th batch of the pass as it was delivered;
// -1 unknown.
func (p *Pass) Rows(i int) int {
	if p.uses == nil {
		return -1
	}
	return p.uses.rows.get(i)
}

// GradOff reports whether the i-th delivery was used with grad mode off, and not
// trained on.
func (p *Pass) GradOff(i int) bool {
	return p.uses != nil && p.uses.off.has(i) && !p.uses.trained.has(i)
}

// Alone reports whether a batch norm in training mode was given one row after the
// i-th delivery.
func (p *Pass) Alone(i int) bool { return p.uses != nil && p.uses.alone.has(i) }

// Known reports whether the trace goes on after the i-th delivery, so that it has
// what was done with it.
func (p *Pass) Known(i int) bool { return p.uses != nil && !(p.uses.unseen && i == p.uses.n-1) }

// Used reports whether a backward call followed the i-th delivery, whatever became
// of its gradients.
func (p *Pass) Used(i int) bool { return p.uses != nil && p.uses.back.has(i) }

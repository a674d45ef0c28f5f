package timeline

import (
	"slices"
	"time"

	"github.com/dptrace/dptrace/traces"
)

// nextStats is what the deliveries of one pass tell about its role.
type nextStats struct {
	calls     int
	delivered int
	stopped   bool
	failed    bool // the last one
	gradOn    int
	steps     uint64 // as of its last next()
	// between counts optimizer steps between two calls of next() of this pass,
	// own those between one of its deliveries and the next call of next() on any
	// loader of the process.
	between, own uint64
	optimizers   []uint32
	followed     bitset  // deliveries that own steps followed
	times        moments // of those, where the uses of the pass do not tell the same
	used         *uses
	begin, end   int64
	open         int64 // see Pass.Open
	// waited is the time in next() of all deliveries but the first, upto the end
	// of the last of them.
	waited, upto int64
}

// Wait is how long the training loop waited for data, and how long it ran in
// all, from its first delivery to its last: the start of the workers and their
// end are in neither.
func (p *Pass) Wait() (waited, total time.Duration) {
	if p.stats == nil || p.stats.upto == 0 {
		return 0, 0
	}
	return time.Duration(p.stats.waited), time.Duration(p.stats.upto - p.stats.begin)
}

// steppedAt is when the step after the i-th delivery had been taken, at the latest.
func (s *nextStats) steppedAt(i int) int64 {
	if at := s.times.get(i); at != 0 || s.used == nil {
		return at
	}
	return s.used.times.get(i)
}

// follow notes that an own step came after a delivery. It is most often in the uses of the pass already.
func (s *nextStats) follow(i int, ns int64) {
	if s.followed.has(i) {
		return
	}
	s.followed.add(i)
	if s.used == nil || !s.used.times.tells(i, ns) {
		s.times.set(i, ns)
	}
}

func (pr *procRows) next(r *traces.BatchNext) {
	last, followed := pr.last, 0
	if last != nil && r.Steps > pr.steps {
		last.own += r.Steps - pr.steps
		followed = last.delivered
	}
	var ps *passRows
	if r.Status != "exit" {
		ps = pr.pass(r.Loader, r.Pass)
		ps.next.used = &ps.uses
	}
	pr.loop.next(ps, r)
	if followed > 0 {
		last.follow(followed-1, r.CallNS)
	}
	if ps == nil {
		pr.steps, pr.last = r.Steps, nil
		return
	}
	s := &ps.next
	if s.calls > 0 && r.Steps > s.steps {
		s.between += r.Steps - s.steps
		if !slices.Contains(s.optimizers, r.Optimizer) {
			s.optimizers = append(s.optimizers, r.Optimizer)
		}
	}
	if s.calls == 0 {
		s.begin = r.TsNS
	}
	s.calls++
	s.steps, s.end = r.Steps, r.TsNS
	s.open = r.TsNS
	s.failed = r.Status == "error"
	if r.Status == "stop" { // torch has ended the workers before next() returns
		s.open = r.CallNS
	}
	if r.Grad {
		s.gradOn++
	}
	pr.steps = r.Steps
	switch r.Status {
	case "ok":
		if s.calls > 1 && r.CallNS > 0 {
			s.waited += r.TsNS - r.CallNS
			s.upto = r.TsNS
		}
		s.delivered++
		pr.last = s
	case "stop":
		s.stopped = true
		fallthrough
	default:
		pr.last = nil
	}
}

// role of a pass, from its own deliveries and those of the other loaders of
// its process. trained says that some other loader of the process was trained
// with.
//
// A validation loader that is advanced by a batch now and then from inside of
// the training loop has steps between its deliveries although none of them is
// its own. It is told from one of several loaders of a training step (GAN,
// teacher and student) by gradients that are off, or by its few deliveries.
func (s *nextStats) role(trained bool, mostDelivered int) Role {
	switch {
	case s.between > 0 && s.own == 0 && trained && (s.gradOn == 0 || 2*s.delivered <= mostDelivered):
		return Eval
	case s.between > 0:
		return Train
	case s.calls > 0 && s.gradOn == 0, trained:
		return Eval
	}
	return Unknown
}

// Evaluates reports whether a pass was a loop of its own in which nothing was
// learned: no step followed a delivery, and gradients were off, or no step was
// taken in it from its begin to the end of its data. A second loader of a
// training step, advanced now and then, is no evaluation.
func (p *Pass) Evaluates() bool {
	s := p.stats
	return p.Role == Eval && s != nil && s.own == 0 && (s.gradOn == 0 || s.between == 0 && s.stopped)
}

// Stepped reports whether an optimizer of the process had stepped when the pass was
// last asked for data.
func (p *Pass) Stepped() bool { return p.stats != nil && p.stats.steps > 0 }

// DataLoader is the DataLoader object that the pass is of.
func (p *Pass) DataLoader() *traces.Loader { return p.Loader.object(p.Object) }

package looptime

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Loop is the loop over a loader on all its ranks: the sums are of all of them.
type Loop struct {
	Ranks  []*Rank
	Passes int // with deliveries, of all ranks
	Batches
	Stages []Stage // of the waiting, the longest first
}

// Batches is how many batches there were, and their time.
type Batches struct {
	Delivered int           // but the first of each pass
	Total     time.Duration // from the first delivery of each pass to its last
	Waited    time.Duration // of that, in next()
}

// Step is the time of the loop itself.
func (b Batches) Step() time.Duration { return b.Total - b.Waited }

// Share of the loop's time in which it waited for data.
func (b Batches) Share() float64 {
	if b.Total <= 0 {
		return 0
	}
	return b.Waited.Seconds() / b.Total.Seconds()
}

func (b *Batches) add(o Batches) {
	b.Delivered += o.Delivered
	b.Total += o.Total
	b.Waited += o.Waited
}

// Rank is the loop on one rank.
type Rank struct {
	Loader *timeline.Loader
	Passes []*Pass
	Batches
	Stages  []Stage
	Workers []Worker // by number; without workers none
	Slow    []Slow   // batches that took longest to fetch, the longest first
	Repeat  []int64  // indices that several slow batches have in common
	Files   []string // that were opened for the slow batches of several passes
	Longest []Slow   // waits
	Median  Medians

	Main       Use // of the training process, while it was in the loop
	Fetchers   Use // of the workers, while it was in the loop
	Starters   Use // of workers that were started after the first pass, until their pass's first batch
	Covered    int // workers that were looked at, passes added up
	Busy       time.Duration
	Idle       time.Duration // of the workers, for want of an index
	Processors Processors
	Refs       []finding.Ref

	waits, steps histogram
	beside       int // ranks that share the processors with it, itself among them
}

// Medians of a loop.
type Medians struct{ Wait, Step time.Duration }

// Pass is one pass of one rank.
type Pass struct {
	*timeline.Pass
	Batches
	Start Start
	Count int // workers; 0: the main process fetches
	Ahead int // prefetch_factor

	main  *mainSide
	share []*share
}

// Start is how a pass began.
type Start struct {
	All     time.Duration // from iter() to the first batch
	Workers time.Duration // of it, until the first worker began to fetch; 0 without workers
	Fetch   time.Duration // the first batch's fetch and collate
	Made    int           // workers that were started for it
}

// Worker is what one worker did, in all passes.
type Worker struct {
	Number         int
	Batches        int
	Fetch, Collate time.Duration
	Idle           time.Duration
}

// Mean time for a batch.
func (w Worker) Mean() time.Duration {
	if w.Batches == 0 {
		return 0
	}
	return (w.Fetch + w.Collate) / time.Duration(w.Batches)
}

// share of a worker in a pass.
type share struct {
	*workerSide
	worker *timeline.WorkerPass
	ended  int64 // CPU time by its end; 0 not known
}

// Build puts together what belongs together.
func (c *collected) Build(e *collect.Evidence) *Loops {
	t := collect.Of(e, timeline.Source)
	shares := map[*timeline.Pass][]*share{}
	for part, rows := range c.parts {
		for k, side := range rows.workers {
			if w := t.Worker(part, k.proc, k.loader, k.pass, k.worker); w != nil {
				shares[w.Pass] = append(shares[w.Pass], &share{side, w, rows.ended[endKey{k.proc, k.pass}]})
			}
		}
	}
	l := &Loops{of: map[int]*Loop{}}
	for _, ranks := range t.ByLoader() {
		loop := &Loop{}
		for _, loader := range ranks {
			if rows := c.parts[loader.Process.Part]; rows != nil {
				if r := rows.rank(loader, shares); r != nil {
					loop.Ranks = append(loop.Ranks, r)
					loop.Passes += len(r.Passes)
					loop.Batches.add(r.Batches)
				}
			}
		}
		if len(loop.Ranks) > 0 {
			for _, r := range loop.Ranks {
				for _, o := range loop.Ranks {
					if o.Part() == r.Part() {
						r.beside++
					}
				}
			}
			loop.Stages = together(loop.Ranks)
			l.of[ranks.ID()] = loop
		}
	}
	return l
}

// rank is the loop over one loader; nil if nothing was delivered.
func (p *partRows) rank(l *timeline.Loader, shares map[*timeline.Pass][]*share) *Rank {
	r := &Rank{Loader: l, Processors: p.processorsOf()}
	for i := range l.Objects {
		if side := p.loops[loaderKey{l.Process.Proc, l.Objects[i].Loader}]; side != nil {
			r.waits.merge(&side.waits)
			r.steps.merge(&side.steps)
			for _, s := range side.longest {
				r.Longest = slowest(r.Longest, s, mostSlow)
			}
		}
	}
	for _, pass := range l.Passes {
		main := p.mains[passKey{l.Process.Proc, pass.Object, pass.Recorded}]
		if main == nil || main.delivered == 0 {
			continue
		}
		x := newPass(pass, main, shares[pass])
		r.Passes = append(r.Passes, x)
		r.Batches.add(x.Batches)
		r.Refs = append(r.Refs, ref(l.Process.Part, "batch_next", main.rows[0]), ref(l.Process.Part, "batch_next", main.rows[1]))
		p.use(r, x)
	}
	if len(r.Passes) == 0 {
		return nil
	}
	const mostRefs = 8
	r.Refs = r.Refs[:min(len(r.Refs), mostRefs)]
	r.Median = Medians{time.Duration(r.waits.median()), time.Duration(r.steps.median())}
	p.slow(r)
	r.workers()
	r.Stages = r.stages()
	return r
}

func newPass(pass *timeline.Pass, main *mainSide, shares []*share) *Pass {
	made := pass.DataLoader()
	x := &Pass{Pass: pass, main: main, share: shares, Count: int(max(made.NumWorkers, 0)), Ahead: int(max(made.Prefetch, 0))}
	if x.Count > 0 && x.Ahead == 0 {
		x.Ahead = 2
	}
	slices.SortFunc(x.share, func(a, b *share) int { return cmp.Compare(a.worker.Number, b.worker.Number) })
	x.Batches = Batches{main.delivered - 1, time.Duration(main.last - main.first), time.Duration(main.waited)}
	if pass.Began != nil && main.first > pass.Begin {
		x.Start.All = time.Duration(main.first - pass.Begin)
	}
	begun := int64(math.MaxInt64)
	for _, s := range shares {
		if s.n > 0 && s.begun < begun {
			begun, x.Start.Fetch = s.begun, time.Duration(s.first)
		}
	}
	if x.Count > 0 && begun != math.MaxInt64 && x.Start.All > 0 {
		x.Start.Workers = time.Duration(max(begun-pass.Begin, 0))
	}
	for _, wp := range pass.Loader.WorkerProcesses {
		if wp.Begin != nil && wp.Object == pass.Object && wp.Begin.Pass == pass.Recorded {
			x.Start.Made++
		}
	}
	return x
}

// use adds what the processes used during a pass.
func (p *partRows) use(r *Rank, x *Pass) {
	if u, ok := p.between(x.Loader.Process, x.main.first, x.main.last); ok {
		r.Main.add(u)
	}
	for _, s := range x.share {
		if s.worker.Number < 0 || s.worker.Process == nil {
			continue
		}
		r.Busy += time.Duration(s.fetch + s.collate)
		r.Idle += time.Duration(s.idle)
		if u, ok := p.between(s.worker.Process, s.worker.Process.Begin, x.main.first); ok && x.Start.Made > 0 && len(r.Passes) > 1 {
			r.Starters.add(u)
		}
		u, ok := p.between(s.worker.Process, max(x.main.first, s.worker.Process.Begin), x.main.last)
		if !ok && s.ended > 0 && s.worker.Process.End > s.begun { // it did not live long enough to be looked at twice
			u, ok = Use{Wall: s.worker.Process.End - s.begun, CPU: s.ended}, true
		}
		if ok {
			r.Fetchers.add(u)
			r.Covered++
		}
	}
}

// workers adds up the passes of each.
func (r *Rank) workers() {
	of := map[int]*Worker{}
	for _, x := range r.Passes {
		for _, s := range x.share {
			n := s.worker.Number
			if n < 0 {
				continue
			}
			if of[n] == nil {
				of[n] = &Worker{Number: n}
			}
			w := of[n]
			w.Batches += s.n
			w.Fetch += time.Duration(s.fetch)
			w.Collate += time.Duration(s.collate)
			w.Idle += time.Duration(s.idle)
		}
	}
	for _, w := range of {
		r.Workers = append(r.Workers, *w)
	}
	slices.SortFunc(r.Workers, func(a, b Worker) int { return cmp.Compare(a.Number, b.Number) })
}

// Aside reports whether some thread other than the main one called next(), which
// may have worked meanwhile; known is false of older traces.
func (l *Loop) Aside() (aside, known bool) {
	for _, r := range l.Ranks {
		for _, x := range r.Passes {
			if x.Began == nil || x.Began.Thread == "" || x.main.thread == 0 {
				return aside, false
			}
			aside = aside || x.main.threads || x.Began.Thread != "main" || x.Began.ThreadID != x.main.thread
		}
	}
	return aside, true
}

// Role of the loop's passes.
func (l *Loop) Role() timeline.Role {
	role := timeline.Unknown
	for _, r := range l.Ranks {
		if r.Loader.Role == timeline.Train || role == timeline.Unknown {
			role = r.Loader.Role
		}
	}
	return role
}

// Without is the share of the loop's time in which it waited, if a share of the
// longest waits had not been, and if that of the longest steps had not.
func (r *Rank) Without(longest float64) (waits, steps float64) {
	w, s := float64(r.waits.without(0)), float64(r.steps.without(0))
	tw, ts := float64(r.waits.without(longest)), float64(r.steps.without(longest))
	return ratio(tw, tw+s), ratio(w, w+ts)
}

// Later is the share of the loop's time in which it waited after the first pass of
// each rank; ok is false if there is no other.
func (l *Loop) Later() (share float64, ok bool) {
	var waited, total time.Duration
	for _, r := range l.Ranks {
		for _, x := range r.Passes[1:] {
			waited += x.Waited
			total += x.Total
		}
	}
	return ratio(waited.Seconds(), total.Seconds()), total > 0
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// Part of the trace that a rank is recorded in.
func (r *Rank) Part() *traces.Part { return r.Loader.Process.Part }

// Accelerators of the rank's machine: none, or their kinds; "" not known.
func (r *Rank) Accelerators() string { return r.Processors.Accelerators }

// Computing is how much of the fetches' time their processes had a processor, at
// least; ok is false if it is not known. Without workers the steps are taken to
// have had one all the time.
func (r *Rank) Computing() (share float64, ok bool) {
	if len(r.Workers) > 0 {
		work := ratio(r.Busy.Seconds(), r.Busy.Seconds()+r.Idle.Seconds())
		if r.Fetchers.Wall == 0 || work <= 0 {
			return 0, false
		}
		return min(ratio(float64(r.Fetchers.CPU), float64(r.Fetchers.Wall))/work, 1), true
	}
	if r.Main.Wall == 0 || r.Waited <= 0 {
		return 0, false
	}
	cpu := ratio(float64(r.Main.CPU), float64(r.Main.Wall)) * r.Total.Seconds()
	return max(ratio(cpu-r.Step().Seconds(), r.Waited.Seconds()), 0), true
}

// Reading is how many bytes of each batch came from disks; ok is false if it is not
// known.
func (r *Rank) Reading() (bytes int64, ok bool) {
	u := r.Fetching()
	if u.Wall == 0 || r.Total <= 0 {
		return 0, false
	}
	perSecond := float64(u.Read) / (float64(u.Wall) / 1e9) * float64(max(len(r.Workers), 1))
	return int64(perSecond * r.Total.Seconds() / float64(max(r.Delivered, 1))), true
}

// Held is for how much of their time the processes that fetch could have worked and
// waited for a processor; ok is false if it is not known.
func (r *Rank) Held() (share float64, ok bool) {
	u := r.Fetching()
	if !u.Timed || u.Wall == 0 {
		return 0, false
	}
	return ratio(float64(u.Delay), float64(u.Wall)), true
}

// Disturbance is for how much of the time that use is of the processes waited for
// processors that other programs had; known is false if that is not known.
func (r *Rank) Disturbance(u Use) (share float64, known bool) {
	const few = 0.1 // of the processors
	p := r.Processors
	if p.Others >= 0 && p.Online > 0 && p.Others < few*float64(p.Online) {
		return 0, true
	}
	if !u.Timed || u.Wall == 0 {
		return 0, false
	}
	return ratio(float64(u.Delay), float64(u.Wall)) * r.foreign(), true
}

// Undisturbed is how long the fetches of all batches would take, side by side in the
// workers that there are, if none had waited for a processor, whoever had it; known is
// false without workers, or where that is not known.
func (r *Rank) Undisturbed() (took time.Duration, known bool) {
	held, known := r.Held()
	if !known || len(r.Workers) == 0 {
		return 0, false
	}
	alone := r.Busy.Seconds() * (1 - min(held, 1)) / float64(len(r.Workers))
	return time.Duration(alone * float64(time.Second)), true
}

// Fetching is what the processes that fetch used, while the loop ran.
func (r *Rank) Fetching() Use {
	if len(r.Workers) > 0 {
		return r.Fetchers
	}
	return r.Main
}

// Saturated reports whether the workers hardly ever had nothing to do: then the
// loader works as fast as it can, whatever the loop does meanwhile.
func (r *Rank) Saturated() bool {
	const idle = 0.1
	return len(r.Workers) > 0 && r.Busy > 0 && ratio(r.Idle.Seconds(), r.Busy.Seconds()+r.Idle.Seconds()) < idle
}

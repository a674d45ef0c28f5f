package looptime

import (
	"fmt"
	"time"
)

// Change is how a loader might be made instead. What is zero stays as it is.
type Change struct {
	Workers  int
	Prefetch int
	Faster   string  // a stage that takes
	Times    float64 // so many times less
}

// Forecast is what a change would give.
type Forecast struct {
	Change
	Batch   time.Duration // time of the loop for a batch, all in all
	Now     time.Duration // as it is
	Limited bool          // by the processors that there are
}

// Gain is how many times as fast the loop would be.
func (f Forecast) Gain() float64 {
	if f.Batch <= 0 {
		return 1
	}
	return f.Now.Seconds() / f.Batch.Seconds()
}

// Free is the ceiling: the loop if no batch had to be waited for.
func (r *Rank) Free() Forecast {
	n := time.Duration(max(r.Delivered, 1))
	return Forecast{Batch: r.Step() / n, Now: r.Total / n}
}

// Free is the ceiling of the rank that is slowest without waiting: where gradients
// are reduced together, all others wait for it.
func (l *Loop) Free() (f Forecast) {
	for _, r := range l.Ranks {
		if one := r.Free(); one.Batch > f.Batch {
			f.Batch = one.Batch
		}
		f.Now = max(f.Now, r.Free().Now)
	}
	return f
}

// Predict what a change would give on the rank that is slowest then.
func (l *Loop) Predict(c Change) (f Forecast, why string) {
	for _, r := range l.Ranks {
		one, why := r.Predict(c)
		if why != "" {
			return f, why
		}
		if one.Batch > f.Batch {
			f = one
		}
	}
	return f, ""
}

// Changes that are worth a forecast: other numbers of workers, another
// prefetch_factor.
func (l *Loop) Changes() (out []Change) {
	x := l.Ranks[0].Passes[len(l.Ranks[0].Passes)-1]
	for w := 1; w <= 32; w *= 2 {
		if w != x.Count {
			out = append(out, Change{Workers: w})
		}
	}
	for p := 1; p <= 16 && x.Count > 0; p *= 2 {
		if p != x.Ahead {
			out = append(out, Change{Prefetch: p})
		}
	}
	return out
}

// How far a replay of the run as it was may be off what was measured.
const credible = 0.15

// Predict what a change would give. Why says why it cannot be told; then there is
// no forecast.
func (r *Rank) Predict(c Change) (f Forecast, why string) {
	made := r.Passes[0].DataLoader()
	if made.NumWorkers > 0 && !made.InOrder {
		return f, "batches are delivered in any order"
	}
	cost, why := r.cost()
	if why != "" {
		return f, why
	}
	as := r.run(Change{}, cost)
	if as.counted == 0 {
		return f, "too few batches"
	}
	if off := as.total/as.measured - 1; off > credible || off < -credible {
		return f, fmt.Sprintf("a replay of the run as it was gives %.2f times the time that was measured", as.total/as.measured)
	}
	now, then := as.whole, r.run(c, cost).whole
	alone := cost
	alone.free = cost.most // other programs leave all processors to the run
	best := r.run(c, alone).whole
	if best < (1-credible)*then {
		return f, fmt.Sprintf("other programs take %.1f of %d processors: whether they make room for more workers is not known",
			r.Processors.Others, r.Processors.Online)
	}
	per := float64(r.Total) / float64(max(r.Delivered, 1))
	f = Forecast{Change: c, Now: time.Duration(per), Batch: time.Duration(per * (then + best) / 2 / now)}
	if c.Workers > 0 {
		stretched, alone := cost.stretch(c.Workers)
		f.Limited = stretched > 1.02*alone
	}
	return f, ""
}

// played is what replays of all that is kept of a rank gave, in seconds.
type played struct {
	replayed
	measured float64 // what took total in the run
}

// run replays what is kept of all passes, changed.
func (r *Rank) run(c Change, cost cost) (sum played) {
	for _, x := range r.Passes {
		q := queues{x.Count, x.Ahead}
		if c.Workers > 0 {
			q.workers = c.Workers
			q.ahead = max(q.ahead, 2)
		}
		if c.Prefetch > 0 {
			q.ahead = c.Prefetch
		}
		factor := cost.factor(x.Count, q.workers)
		// As it was and as it would be are counted from the same batch on.
		warm := 2 * max(q.workers, x.Count, 1) * max(q.ahead, x.Ahead)
		for _, times := range x.times(c, factor) {
			from := 0
			if times.from > 0 {
				from = warm
			}
			if len(times.all) < from+2 {
				continue
			}
			out := q.replay(times.all, from)
			sum.total += out.total
			sum.whole += out.whole
			sum.counted += out.counted
			sum.measured += times.took(from)
		}
	}
	return sum
}

// stretchOf batches that follow each other.
type stretchOf struct {
	from uint32 // the first batch
	all  []batchTimes
	done []int64 // when each was delivered
}

func (s *stretchOf) took(from int) float64 { return float64(s.done[len(s.done)-1]-s.done[from]) / 1e9 }

// times of the batches of a pass, in runs without gaps, changed.
func (x *Pass) times(c Change, factor float64) (out []stretchOf) {
	all := x.join()
	transfer, _ := x.transfer()
	fewer := func(stage string, ns float64) float64 {
		if c.Faster == stage && c.Times > 0 {
			return ns / c.Times
		}
		return ns
	}
	own := float64(x.main.putNS) / float64(max(x.main.puts, 1))
	for i := range all {
		j := &all[i]
		if i == 0 || all[i-1].batch+1 != j.batch {
			out = append(out, stretchOf{from: j.batch})
		}
		s := &out[len(out)-1]
		t := batchTimes{
			service:  factor * (fewer(Fetch, float64(j.fetch)) + fewer(Collate, float64(j.collate))) / 1e9,
			own:      fewer(Sampler, own) / 1e9,
			transfer: fewer(Queue, transfer) / 1e9,
		}
		if i+1 < len(all) {
			t.step = max(float64(all[i+1].call-j.call)-float64(j.wait), 0) / 1e9
		}
		if x.Count == 0 { // what next() took besides
			t.own = max(float64(j.wait)-float64(j.fetch)-float64(j.collate), 0) / 1e9
		}
		s.all = append(s.all, t)
		s.done = append(s.done, j.call+int64(j.wait))
	}
	return out
}

// cost is what processors there are, and what a batch takes of them.
type cost struct {
	free   float64 // processors that the workers may have, if other programs take as many as they did
	most   float64 // the same if these took none
	cpu    float64 // of a batch, in seconds of one processor
	alone  float64 // seconds for a batch, if its worker never waited for a processor
	actual float64 // seconds for a batch, as it was
}

// cost of this rank's batches. Without workers the training process's time is that
// of the step and of the fetch: as much of it as can be is taken for the fetch.
func (r *Rank) cost() (c cost, why string) {
	var n int
	var busy time.Duration
	for _, x := range r.Passes {
		for _, s := range x.share {
			n += s.n
			busy += time.Duration(s.fetch + s.collate)
		}
	}
	switch {
	case n == 0:
		return c, "the fetches are not in the trace"
	case r.Processors.Count == 0:
		return c, "how many processors the run may use is not in the trace"
	case r.Main.Wall == 0:
		return c, "the CPU time of the training process was not looked at while it was in the loop"
	}
	c.actual = busy.Seconds() / float64(n)
	mainShare := ratio(float64(r.Main.CPU), float64(r.Main.Wall))
	delay := ratio(float64(r.Main.Delay), float64(r.Main.Wall))
	if r.Passes[0].Count == 0 {
		// All of its CPU time that the steps alone cannot have needed, at most the whole fetch.
		c.cpu = min(mainShare*r.Total.Seconds()/float64(max(r.Delivered, 1)), c.actual)
		c.alone = c.actual * (1 - min(delay, 0.95)*(1-r.foreign()))
		mainShare = max(mainShare-ratio(c.cpu*float64(r.Delivered), r.Total.Seconds()), 0)
	} else {
		if r.Covered == 0 || r.Fetchers.Wall == 0 {
			return c, "the workers did not live long enough for their CPU time to be looked at"
		}
		inWork := ratio(busy.Seconds(), busy.Seconds()+r.Idle.Seconds())
		if inWork <= 0 {
			return c, "the workers did nothing"
		}
		used := ratio(float64(r.Fetchers.CPU), float64(r.Fetchers.Wall)) / inWork
		waited := ratio(float64(r.Fetchers.Delay), float64(r.Fetchers.Wall)) / inWork
		c.cpu = used * c.actual
		c.alone = c.actual * (1 - min(waited, 0.95)*(1-r.foreign()))
	}
	ranks := float64(max(r.beside, 1))
	c.most = max((r.Processors.Count-ranks*mainShare)/ranks, 0.05)
	if p := r.Processors; p.Idle >= 0 {
		// What others have they may not give away: schedulers share between groups of
		// processes, not threads. A little of it everyone gets.
		const little = 0.1
		used := c.cpu * float64(r.Delivered) / r.Total.Seconds()
		c.free = min(c.most, max(used+p.Idle/ranks, little*p.Count/ranks))
	} else {
		c.free = c.most
	}
	return c, ""
}

// foreign is how much of what the run waited for processors is owed to other
// programs of the machine: their share of what was used.
func (r *Rank) foreign() float64 {
	p := r.Processors
	if p.Others < 0.1*float64(p.Online) || p.Online == 0 {
		return 0
	}
	return ratio(p.Others, p.Others+p.Run)
}

// stretch is how long a batch takes with so many workers at a time, and alone: they
// share the processors.
func (c cost) stretch(workers int) (stretched, alone float64) {
	return max(c.alone, float64(workers)*c.cpu/c.free), c.alone
}

// factor by which the times of the fetches change where other workers share the
// processors: more workers make none faster. As it was stays as it was.
func (c cost) factor(before, after int) float64 {
	if before == after || c.actual <= 0 {
		return 1
	}
	then, _ := c.stretch(max(after, 1))
	if after > before {
		return max(then/c.actual, 1)
	}
	return then / c.actual
}

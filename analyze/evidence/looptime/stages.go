package looptime

import (
	"cmp"
	"slices"
	"time"
)

// The stages of a batch's way, as reports call them.
const (
	Sampler = "sampler and index queue" // indices are drawn and handed to a worker
	Fetch   = "fetch"                   // dataset and transforms
	Collate = "collate"
	Queue   = "result queue" // serialised in the worker, and taken out in the training process
)

// Stage is one stage of all batches. A stage inside of another one names it in Of.
type Stage struct {
	Name   string
	Of     string
	Waited time.Duration // of the loop's waiting, what this stage was the reason for
	Work   time.Duration // what it took, in all workers together; 0 not known
	Count  int           // batches that Work is of
}

// Mean is its work for one batch.
func (s Stage) Mean() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return s.Work / time.Duration(s.Count)
}

// names is all stages, in the order of a batch's way.
var names = []string{Sampler, Fetch, Collate, Queue}

// Names of all stages, in the order of a batch's way.
func Names() []string { return slices.Clone(names) }

// tally is time by stage.
type tally map[string]float64

// stages of a rank. What it waited for is measured on the batches that are kept,
// and stands for all.
func (r *Rank) stages() []Stage {
	waits, work, count := tally{}, tally{}, map[string]int{}
	for _, x := range r.Passes {
		for n, waited := range x.Waits() {
			waits[n] += float64(waited)
		}
		for _, s := range x.share {
			work[Fetch] += float64(s.fetch)
			work[Collate] += float64(s.collate)
			count[Fetch] += s.n
			count[Collate] += s.n
		}
		work[Sampler] += float64(x.main.putNS)
		count[Sampler] += int(x.main.puts)
		if mean, n := x.transfer(); n > 0 {
			work[Queue] += mean * float64(x.main.delivered)
			count[Queue] += x.main.delivered
		}
	}
	told := 0.0
	for _, n := range names {
		told += waits[n]
	}
	var out []Stage
	for _, n := range names {
		if told > 0 { // passes of which no batch is kept waited for the same
			waits[n] *= float64(r.Waited) / told
		}
		if s := (Stage{Name: n, Waited: time.Duration(waits[n]), Work: time.Duration(work[n]), Count: count[n]}); s.Waited > 0 || s.Work > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Waits is what the loop waited for in the pass, by stage; empty if none of its
// batches is kept.
func (x *Pass) Waits() map[string]time.Duration {
	of, out := x.waitedFor(), map[string]time.Duration{}
	sum := 0.0
	for _, n := range names {
		sum += of[n]
	}
	for _, n := range names {
		if sum > 0 && of[n] > 0 {
			out[n] = time.Duration(of[n] / sum * float64(x.Waited))
		}
	}
	return out
}

// Work is what each worker did in the pass; without workers the training process is
// worker -1.
func (x *Pass) Work() (out []Worker) {
	for _, s := range x.share {
		out = append(out, Worker{Number: s.worker.Number, Batches: s.n, Fetch: time.Duration(s.fetch), Collate: time.Duration(s.collate),
			Idle: time.Duration(s.idle)})
	}
	return out
}

// joined is a delivery and its fetch.
type joined struct {
	batch uint32
	delivery
	fetched
	worker int
}

// end is when the worker had the batch ready.
func (j *joined) end() float64 { return float64(j.start) + float64(j.fetch) + float64(j.collate) }

// came is when it was in the training process.
func (j *joined) came() float64 {
	if j.arrived >= 0 {
		return float64(j.call) + float64(j.arrived)
	}
	return float64(j.call)
}

// join the deliveries of a pass with their fetches, as far as both are kept, in the
// order of the deliveries.
func (x *Pass) join() []joined {
	type fetch struct {
		fetched
		worker int
	}
	fetches := map[uint32]fetch{}
	for _, s := range x.share {
		for i, b := range s.batches.batches {
			fetches[b] = fetch{s.batches.values[i], s.worker.Number}
		}
	}
	var out []joined
	for i, b := range x.main.batches.batches {
		if f, ok := fetches[b]; ok {
			out = append(out, joined{b, x.main.batches.values[i], f.fetched, f.worker})
		}
	}
	return out
}

// waitedFor is what the deliveries that are kept waited for, ns.
func (x *Pass) waitedFor() tally {
	t := tally{}
	if x.Count == 0 {
		for _, s := range x.share {
			t[Fetch] += float64(s.fetch)
			t[Collate] += float64(s.collate)
		}
		t[Sampler] = float64(x.main.putNS)
		return t
	}
	ratio := x.fetchShare()
	for _, j := range x.join() {
		if j.batch == 0 {
			continue
		}
		call, came, done := float64(j.call), j.came(), float64(j.call)+float64(j.wait)
		t[Sampler] += done - came
		start, middle, end := float64(j.start), float64(j.start)+float64(j.fetch), j.end()
		idle := overlap(call, came, start-float64(j.idle), start)
		before := overlap(call, came, call, start) - idle
		t[Sampler] += idle
		t[Fetch] += overlap(call, came, start, middle) + ratio*before // it was at another batch
		t[Collate] += overlap(call, came, middle, end) + (1-ratio)*before
		t[Queue] += overlap(call, came, end, came)
	}
	return t
}

// fetchShare is how much of the workers' work is fetching; the rest is collate.
func (x *Pass) fetchShare() float64 {
	var fetch, all float64
	for _, s := range x.share {
		fetch += float64(s.fetch)
		all += float64(s.fetch + s.collate)
	}
	if all <= 0 {
		return 1
	}
	return fetch / all
}

// overlap of [a, b] and [c, d].
func overlap(a, b, c, d float64) float64 { return max(min(b, d)-max(a, c), 0) }

// transfer is the mean time from the end of a worker's work until the batch is in
// the training process, of those that it waited for; ns.
func (x *Pass) transfer() (mean float64, n int) {
	if x.Count == 0 {
		return 0, 0
	}
	var sum float64
	for _, j := range x.join() {
		if end := j.end(); j.arrived > 0 && end > float64(j.call) && end < j.came() {
			sum += j.came() - end
			n++
		}
	}
	if n == 0 {
		return 0, 0
	}
	return sum / float64(n), n
}

// together is the stages of all ranks, what was waited for longest first.
func together(ranks []*Rank) []Stage {
	var out []Stage
	for _, r := range ranks {
		for _, s := range r.Stages {
			i := slices.IndexFunc(out, func(o Stage) bool { return o.Name == s.Name })
			if i < 0 {
				out = append(out, s)
				continue
			}
			out[i].Waited += s.Waited
			out[i].Work += s.Work
			out[i].Count += s.Count
		}
	}
	slices.SortStableFunc(out, func(a, b Stage) int { return cmp.Compare(b.Waited, a.Waited) })
	return out
}

// Straggler is a worker or a rank that takes much longer for a batch than the
// others, so that they wait for it.
type Straggler struct {
	Rank   int // -1: the run has none
	Worker int // -1: the rank itself
	Mean   time.Duration
	Others time.Duration // median of theirs
}

// A straggler takes so much longer than the median of the others, on so many
// batches each.
const (
	straggles  = 1.5
	fewBatches = 8
)

// Stragglers among the workers of each rank, and among ranks, whose workers' time
// for a batch is compared.
func (l *Loop) Stragglers() (out []Straggler) {
	var ranks []Worker
	for i, r := range l.Ranks {
		out = append(out, slower(r.Workers, func(w Worker) Straggler { return Straggler{Rank: r.Loader.Rank(), Worker: w.Number} })...)
		sum := Worker{Number: i}
		for _, x := range r.Passes {
			for _, s := range x.share {
				sum.Batches += s.n
				sum.Fetch += time.Duration(s.fetch)
				sum.Collate += time.Duration(s.collate)
			}
		}
		ranks = append(ranks, sum)
	}
	return append(out, slower(ranks, func(w Worker) Straggler { return Straggler{Rank: l.Ranks[w.Number].Loader.Rank(), Worker: -1} })...)
}

func slower(all []Worker, of func(Worker) Straggler) (out []Straggler) {
	for i, w := range all {
		var others []time.Duration
		for k, o := range all {
			if k != i && o.Batches >= fewBatches {
				others = append(others, o.Mean())
			}
		}
		if len(others) == 0 || w.Batches < fewBatches {
			continue
		}
		slices.Sort(others)
		if middle := others[len(others)/2]; w.Mean().Seconds() >= straggles*middle.Seconds() && w.Mean()-middle > time.Millisecond {
			s := of(w)
			s.Mean, s.Others = w.Mean(), middle
			out = append(out, s)
		}
	}
	return out
}

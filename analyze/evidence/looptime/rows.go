package looptime

import (
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// mainSide is the deliveries of one pass.
type mainSide struct {
	first, last int64 // when the first and the last batch were delivered
	delivered   int
	waited      int64 // in next() of all but the first
	own         int64 // of that, after the batch had come out of its queue: sampler, next index
	steps       int64 // between two deliveries
	puts, putNS int64
	batches     series[delivery]
	rows        [2]uint64 // first and last
	thread      uint32    // that called next(); 0 not known
	threads     bool      // there were several
}

// delivery is one call of next() that gave a batch.
type delivery struct {
	call    int64
	wait    float32 // ns, until it returned
	arrived float32 // ns after call at which the batch came out of the queue; <0: not known, or before
}

// loopSide is all passes of one DataLoader object.
type loopSide struct {
	waits, steps histogram
	longest      []Slow // waits
}

// workerSide is the fetches of one worker in one pass.
type workerSide struct {
	n                          int // that brought samples
	idle, fetch, collate, hand int64
	begun, ended               int64 // the first fetch, the last one
	first                      int64 // the first fetch and its collate, ns
	slowest                    []Slow
	batches                    series[fetched]
}

// fetched is one fetch.
type fetched struct {
	start                int64
	idle, fetch, collate float32
}

func (p *partRows) fetch(r *traces.BatchFetch) {
	k := fetchKey{passKey{r.Proc, r.Loader, r.Pass}, r.Worker}
	w := p.workers[k]
	if w == nil {
		w = &workerSide{}
		p.workers[k] = w
	}
	w.hand += r.PutNS // of the one before
	if r.Samples <= 0 {
		return // the end of an IterableDataset
	}
	took := r.FetchNS + r.CollateNS
	if w.n == 0 {
		w.begun, w.first = r.TsNS, took
	} else {
		w.idle += r.WaitNS
	}
	w.n++
	w.fetch += r.FetchNS
	w.collate += r.CollateNS
	w.ended = max(w.ended, r.TsNS+took)
	w.slowest = slowest(w.slowest, Slow{Batch: r.Batch, NS: took, At: r.TsNS, Seq: r.Seq}, mostSlow)
	w.batches.add(r.Batch, fetched{r.TsNS, float32(r.WaitNS), float32(r.FetchNS), float32(r.CollateNS)}, &p.kept)
}

func (p *partRows) next(r *traces.BatchNext) {
	if r.Status != "ok" || r.CallNS <= 0 {
		return
	}
	k := passKey{r.Proc, r.Loader, r.Pass}
	m := p.main(k)
	l := p.loops[loaderKey{r.Proc, r.Loader}]
	if l == nil {
		l = &loopSide{}
		p.loops[loaderKey{r.Proc, r.Loader}] = l
	}
	wait, own := max(r.TsNS-r.CallNS, 0), int64(0)
	if r.ArrivedNS > r.CallNS {
		own = max(r.TsNS-r.ArrivedNS, 0)
	}
	m.threads = m.threads || m.delivered > 0 && r.Thread != m.thread
	m.thread = r.Thread
	if m.delivered == 0 {
		m.first, m.rows[0] = r.TsNS, r.Seq
	} else {
		m.waited += wait
		m.own += own
		step := max(r.CallNS-m.last, 0)
		m.steps += step
		l.waits.add(wait)
		l.steps.add(step)
		l.longest = slowest(l.longest, Slow{Batch: r.Batch, NS: wait, At: r.CallNS, Seq: r.Seq}, mostSlow)
	}
	m.delivered++
	m.last, m.rows[1] = r.TsNS, r.Seq
	arrived := float32(-1)
	if r.ArrivedNS > r.CallNS {
		arrived = float32(r.ArrivedNS - r.CallNS)
	}
	m.batches.add(r.Batch, delivery{call: r.CallNS, wait: float32(wait), arrived: arrived}, &p.kept)
}

func (p *partRows) main(k passKey) *mainSide {
	m := p.mains[k]
	if m == nil {
		m = &mainSide{}
		p.mains[k] = m
	}
	return m
}

// Of the first batches of a part the indices of their samples are kept, to name
// those of slow ones: so many of each batch, and so many in all.
const (
	mostIndices = 64
	allIndices  = 1 << 19
)

// put takes what a worker was asked for.
func (p *partRows) put(r *traces.BatchPut) {
	k := passKey{r.Proc, r.Loader, r.Pass}
	m := p.main(k)
	if r.First != 0 {
		return
	}
	m.puts++
	m.putNS += r.DurNS
	if n := min(len(r.Indices), mostIndices); p.keptIndices+n <= allIndices {
		p.indices[batchKey{k, r.Batch}] = slices.Clone(r.Indices[:n])
		p.keptIndices += n
	}
}

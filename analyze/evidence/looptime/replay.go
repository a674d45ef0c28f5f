package looptime

// Replay of the recorded times through the queues of torch's DataLoader. With W
// workers and prefetch_factor P it hands out W·P batches as the pass begins, in
// turn to worker 0, 1, …; each worker takes its own in their order; next() waits
// for the batch whose turn it is, hands out another one, and gives the batch to the
// loop. Without workers next() fetches itself. All times are in seconds.

// batchTimes is what one batch took.
type batchTimes struct {
	service  float64 // fetch and collate, in a worker or in next()
	own      float64 // sampler and index queue, in next()
	transfer float64 // from the worker's end until next() could take it
	step     float64 // of the loop with the batch
}

// queues is how a loader is made.
type queues struct{ workers, ahead int }

// replayed is what came of it.
type replayed struct {
	total   float64 // from the first counted delivery to the last
	whole   float64 // the same from the begin of the pass, if warm is 0
	waited  float64 // of that, in next()
	counted int     // deliveries after the first one
}

// replay runs batches in a row. The deliveries before warm are not counted: the run
// may begin in the middle of a pass.
func (q queues) replay(all []batchTimes, warm int) (out replayed) {
	if q.workers <= 0 {
		return inline(all, warm)
	}
	free := make([]float64, q.workers) // when each worker has done what it was given
	ready := make([]float64, len(all))
	now, given := 0.0, 0
	give := func() {
		if given == len(all) {
			return
		}
		b := &all[given]
		now += b.own
		w := given % q.workers
		free[w] = max(free[w], now) + b.service
		ready[given] = free[w] + b.transfer
		given++
	}
	for range q.workers * max(q.ahead, 1) {
		give()
	}
	begun := now
	for i := range all {
		call := now
		now = max(now, ready[i])
		give()
		if i == warm {
			begun = now
		} else if i > warm {
			out.waited += now - call
			out.counted++
			out.total = now - begun
		}
		now += all[i].step
	}
	out.whole = out.total
	if warm == 0 {
		out.whole += begun
	}
	return out
}

// inline is replay without workers.
func inline(all []batchTimes, warm int) (out replayed) {
	for i := range all {
		wait := all[i].own + all[i].service
		switch {
		case i > warm:
			out.waited += wait
			out.total += wait + all[i-1].step
			out.counted++
		case warm == 0:
			out.whole = wait
		}
	}
	out.whole += out.total
	return out
}

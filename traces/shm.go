package traces

// MostInFlight is how many batches of a loader lie in shared memory at once at most: what its workers may be ahead of the training
// loop, and the one that the loop has. 0: it has no workers. Measured, batches of 0.8 to 38 MB: the peak is within 1 % of it.
func (l *Loader) MostInFlight() int64 { return l.inFlight(1) }

// ForAMomentInFlight is MostInFlight and one more, which there may be while the loop takes the next batch: it still has the last, and a
// worker has been asked for another (torch 1.8 to 2.15: _process_data asks before it returns). Microseconds, of which a worker can make
// use on a busy machine only.
func (l *Loader) ForAMomentInFlight() int64 { return l.inFlight(1 + ForAMoment) }

// ForAMoment is how many batches more there are for a moment.
const ForAMoment = 1

func (l *Loader) inFlight(loops int64) int64 {
	if l.NumWorkers <= 0 {
		return 0
	}
	n := int64(l.NumWorkers)*l.prefetch() + loops
	if !l.Iterable && l.Length > 0 && l.BatchSize > 0 {
		n = min(n, (l.Length+int64(l.BatchSize)-1)/int64(l.BatchSize))
	}
	return n
}

// prefetch is prefetch_factor; torch's own is 2.
func (l *Loader) prefetch() int64 {
	if l.Prefetch > 0 {
		return int64(l.Prefetch)
	}
	return 2
}

// FewerInFlight gives a number of workers and a prefetch_factor, no more than a loader has, of which so many batches in flight are not
// exceeded, not even for a moment: as many workers as can be. ok is false if not even one worker with one batch ahead is so few.
func (l *Loader) FewerInFlight(batches int64) (workers, prefetch int64, ok bool) {
	for workers = int64(l.NumWorkers); workers > 0; workers-- {
		if prefetch = min(l.prefetch(), (batches-1-ForAMoment)/workers); prefetch > 0 {
			return workers, prefetch, true
		}
	}
	return 0, 0, false
}

// New is the bytes that the batch takes of shared memory by itself.
func (b *BatchBytes) New() int64 { return max(b.Bytes-b.Shared, 0) }

// ShmSize is a size of /dev/shm for so many bytes, in MiB: with a margin, and a multiple of 64, which is what containers have if nothing
// is said.
func ShmSize(bytes int64) int64 {
	const step = 64
	size := int64(float64(bytes)/(1-ShmMargin))>>20 + 1
	return (size + step - 1) / step * step
}

// ShmMargin is the share of /dev/shm that advice leaves free: batches differ, and other programs use it.
const ShmMargin = 0.1

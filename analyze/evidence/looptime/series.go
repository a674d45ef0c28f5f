package looptime

// Of a pass single batches are kept in runs of so many, so that queues can be
// replayed; of a long pass every second run, then every fourth, and so on.
const (
	runLength = 256
	mostKept  = 4096    // of one side of one pass
	fewKept   = 512     // where a part has more than
	manyKept  = 1 << 18 // of them in all; then passes that begin have none
)

// series is values of the batches of one pass, by their numbers. Which are kept
// depends on nothing but the numbers and the stride: what two series have in common
// is whole runs.
type series[T any] struct {
	stride  uint32 // of runs; 0 is 1
	batches []uint32
	values  []T
}

// add a batch; it counts what a part keeps.
func (s *series[T]) add(batch uint32, v T, kept *int) {
	if s.stride == 0 {
		s.stride = 1
	}
	if batch/runLength%s.stride != 0 || len(s.batches) == 0 && *kept > manyKept {
		return
	}
	s.batches = append(s.batches, batch)
	s.values = append(s.values, v)
	*kept++
	most := mostKept
	if *kept > manyKept {
		most = fewKept
	}
	for len(s.batches) > most && s.stride < 1<<24 {
		s.thin(kept)
	}
}

// thin drops every second run.
func (s *series[T]) thin(kept *int) {
	s.stride *= 2
	n := 0
	for i, b := range s.batches {
		if b/runLength%s.stride == 0 {
			s.batches[n], s.values[n] = b, s.values[i]
			n++
		}
	}
	*kept -= len(s.batches) - n
	s.batches, s.values = s.batches[:n], s.values[:n]
	if n <= runLength { // it is one run, which may be longer than it should be
		s.stride = max(s.stride, 2)
	}
}

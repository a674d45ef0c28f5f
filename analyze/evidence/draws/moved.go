package draws

import "github.com/dptrace/dptrace/analyze/timeline"

// served is one worker in one pass, as recorded.
type served struct {
	proc, loader, pass uint32
	worker             int32
}

// fetchSet is fetches of one worker in one pass: the n-th bit is that of fetch n.
type fetchSet []uint64

// mostMoved is how many fetches of a pass it is known of; further on any of them may be in the set.
const mostMoved = 1 << 20

func (s *fetchSet) add(fetch uint32) {
	if fetch >= mostMoved {
		return
	}
	for len(*s) <= int(fetch/64) {
		*s = append(*s, 0)
	}
	(*s)[fetch/64] |= 1 << (fetch % 64)
}

func (s fetchSet) has(fetch uint32) bool {
	return fetch >= mostMoved || int(fetch/64) < len(s) && s[fetch/64]&(1<<(fetch%64)) != 0
}

// Moved reports whether any generator that was watched had another state after a
// fetch than before it, or may have had.
func (s *Streams) Moved(w *timeline.WorkerPass, fetch uint32) bool { return s.moved[w].has(fetch) }

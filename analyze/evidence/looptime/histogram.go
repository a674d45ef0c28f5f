package looptime

import "math"

// histogram is how many durations there were of each size, eight sizes to an
// octave, and their sums.
type histogram struct {
	buckets [perOctave * 48]bucket
	n       int
}

type bucket struct {
	n   int32
	sum int64
}

const perOctave = 8

func (h *histogram) add(ns int64) {
	i := 0
	if ns > 0 {
		i = min(max(int(perOctave*math.Log2(float64(ns))), 0), len(h.buckets)-1)
	}
	h.buckets[i].n++
	h.buckets[i].sum += max(ns, 0)
	h.n++
}

// merge adds the durations of another one.
func (h *histogram) merge(o *histogram) {
	for i := range h.buckets {
		h.buckets[i].n += o.buckets[i].n
		h.buckets[i].sum += o.buckets[i].sum
	}
	h.n += o.n
}

// without is the sum of all durations but a share of the longest; at least one is
// left out, where there are more than a few.
func (h *histogram) without(share float64) (sum int64) {
	drop := int32(math.Ceil(share * float64(h.n)))
	if h.n < 10 {
		drop = 0
	}
	for i := len(h.buckets) - 1; i >= 0; i-- {
		b := h.buckets[i]
		if b.n == 0 {
			continue
		}
		cut := min(drop, b.n)
		drop -= cut
		sum += int64(float64(b.sum) * float64(b.n-cut) / float64(b.n))
	}
	return sum
}

// median is about the middle of the durations, ns; 0: there are none.
func (h *histogram) median() int64 {
	seen := 0
	for i := range h.buckets {
		b := h.buckets[i]
		if seen += int(b.n); b.n > 0 && 2*seen >= h.n {
			return b.sum / int64(b.n)
		}
	}
	return 0
}

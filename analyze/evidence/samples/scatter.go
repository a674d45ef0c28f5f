package samples

import "github.com/dptrace/dptrace/analyze/evidence/digests"

// Scatter is what two reads have in common wherever it lies, where only some of
// their samples were looked at.
type Scatter struct {
	Shared   int     // contents that both read
	Own      int     // contents that one of them read more than once: rows that are equal in the data
	Expected float64 // shared contents if both read the same samples, each in an order of its own
}

// Scattered compares what was looked at of two reads, without regard to places.
func Scattered(a, b *Read) (s Scatter) {
	for _, by := range []Basis{Whole, Chunks} {
		mine, theirs := a.contents(by), b.contents(by)
		n, m := 0, 0
		for k, times := range mine {
			n += times
			if theirs[k] > 0 {
				s.Shared++
			}
			if times > 1 {
				s.Own++
			}
		}
		for _, times := range theirs {
			m += times
			if times > 1 {
				s.Own++
			}
		}
		if all := max(a.Samples, b.Samples); all > 0 {
			s.Expected += float64(n) * float64(m) / float64(all)
		}
	}
	return s
}

// certain is how many contents must be expected in common so that none of them
// says that there are none: by chance that is seen once in 20,000 (e^-10).
const certain = 10

// Tells reports whether so many samples were looked at that nothing in common says that
// the samples are others.
func (s *Scatter) Tells() bool { return s.Expected >= certain }

// Same reports whether the same samples were read, as far as a part of them tells:
// as many in common as that makes likely, and next to none twice in one read, as
// it would be if rows were equal in the data.
func (s *Scatter) Same() bool {
	return s.Shared >= enoughContents && 10*s.Own <= s.Shared && 2*float64(s.Shared) >= s.Expected
}

// Twins are two reads that have so much in common.
func (s *Scatter) Twins(a, b *Read) *Twins {
	return &Twins{A: a, B: b, By: Whole, Scattered: true, Equal: s.Shared, Both: min(a.Looked(), b.Looked()), Different: s.Shared}
}

// contents are how often each was read.
func (r *Read) contents(by Basis) map[digests.Sum]int {
	times := map[digests.Sum]int{}
	for i := range r.digests {
		if k, ok := r.digests[i].key(by); ok {
			times[k]++
		}
	}
	return times
}

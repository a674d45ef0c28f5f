package notshuffled

import (
	"fmt"
	"math"

	"github.com/dptrace/dptrace/analyze/evidence/values"
)

// labels is how often samples that lie side by side have the same strings and
// integers: those of most datasets are labels.
type labels struct {
	pairs, alike int
	chance       float64 // that two samples are alike
}

// telling is how many pairs say something, and how likely two samples must be
// alike: names of files are all different, in any order.
const (
	telling = 32
	known   = 0.02
)

// labelsOf samples of a pass in which each index is so much more than the one before.
func labelsOf(samples []values.Sample, step int64) (l labels) {
	at := map[int64]*values.Sample{}
	count := map[[16]byte]int{}
	for i := range samples {
		if s := &samples[i]; s.Labelled() && at[s.Index] == nil {
			at[s.Index] = s
			count[s.Meta]++
		}
	}
	for index, s := range at {
		if next := at[index+step]; next != nil {
			l.pairs++
			if next.Meta == s.Meta {
				l.alike++
			}
		}
	}
	n := float64(len(at))
	for _, k := range count {
		l.chance += float64(k) / n * float64(k-1) / max(n-1, 1)
	}
	return l
}

func (l labels) tell() bool { return l.pairs >= telling && l.chance >= known && l.chance < 1 }

// sorted reports whether neighbours have the same more often than in a random order.
func (l labels) sorted() bool {
	return l.tell() && !l.mixed() && float64(l.alike) > float64(l.pairs)*l.chance
}

// mixed reports whether the labels come as in a random order, within three
// standard deviations.
func (l labels) mixed() bool {
	n := float64(l.pairs)
	return l.tell() && math.Abs(float64(l.alike)-n*l.chance) <= 3*math.Sqrt(n*l.chance*(1-l.chance))
}

func (l labels) text() string {
	return fmt.Sprintf("Of %d samples and the ones after them, %d have the same strings and integers (labels); "+
		"in a random order it would be %.0f.",
		l.pairs, l.alike, float64(l.pairs)*l.chance)
}

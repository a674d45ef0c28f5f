package notshuffled

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/evidence/values"
)

// windows is how many samples go on where the one before them began: forecasts
// are learnt from such, and their order is that of time.
type windows struct{ follow, pairs int }

// windowsOf counts among the first samples of a pass: only in these it is looked
// for. The hook sees what one fetch has, so that the first of a batch never
// follows.
func windowsOf(samples []values.Sample) (w windows) {
	var last int64 = -2
	for i := range samples {
		s := &samples[i]
		if s.Follows() {
			w.follow++
		}
		if s.Index == last+1 {
			w.pairs++
		}
		last = s.Index
		if i >= looked-1 {
			break
		}
	}
	return w
}

// looked is how many samples of a worker and pass the hook looks at.
const looked = 32

// series reports whether at least half of the samples are such windows.
func (w windows) series() bool { return w.follow >= enough && 2*w.follow >= w.pairs }

func (w windows) text() string {
	return fmt.Sprintf("Of the first %d samples that come right after the one before them, %d begin some steps further in the same series.",
		w.pairs, w.follow)
}

package report

import (
	"fmt"
	"time"

	"github.com/dptrace/dptrace/analyze/evidence/fetches"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/words"
)

// fetchPart is what a part of the fetch has of its time, by its share of the fetches
// that were looked at.
type fetchPart struct {
	looptime.Stage
	looked int // these fetches
}

// parts of the fetches, which come after it: on a processor, waiting for one,
// blocked; then each transform of a chain that was timed, which lies across these
// three.
func parts(split *fetches.Split, fetch looptime.Stage) (all []fetchPart) {
	if split.Fetches == 0 {
		return nil
	}
	of := func(name string, share float64, looked int) {
		scaled := func(d time.Duration) time.Duration { return time.Duration(share * float64(d)) }
		all = append(all, fetchPart{looptime.Stage{Name: name, Of: looptime.Fetch, Waited: scaled(fetch.Waited), Work: scaled(fetch.Work),
			Count: fetch.Count}, looked})
	}
	of("on a processor", split.Share(split.OnCPU), split.Fetches)
	if split.QueueKnown == split.Fetches {
		of("waiting for a processor", split.Share(split.Queue), split.Fetches)
		of("blocked", split.Share(split.Blocked), split.Fetches)
	} else {
		of("blocked, or waiting for a processor", split.Share(split.Queue+split.Blocked), split.Fetches)
	}
	for _, t := range split.Transforms() {
		if t.Index >= 0 && t.Fetches > 0 {
			of(fmt.Sprintf("transform %d: %s", t.Index, words.Last(t.Class)), t.Share(), t.Fetches)
		}
	}
	return all
}

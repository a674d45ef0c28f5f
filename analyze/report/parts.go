package report

import (
	"fmt"
	"time"

	"github.com/dptrace/dptrace/analyze/evidence/fetches"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/evidence/offcpu"
	"github.com/dptrace/dptrace/analyze/words"
)

// fetchPart is what a part of the fetch has of its time, by its share of the fetches
// that were looked at.
type fetchPart struct {
	looptime.Stage
	looked int // these fetches
}

// parts of the fetches, which come after it: on a processor, waiting for one,
// blocked and, of that, in what; then each transform of a chain that was timed, which lies across these
// three.
func parts(split *fetches.Split, in *offcpu.Blocked, fetch looptime.Stage) (all []fetchPart) {
	if split.Fetches == 0 {
		return nil
	}
	of := func(name string, share float64, looked int) {
		scaled := func(d time.Duration) time.Duration { return time.Duration(share * float64(d)) }
		all = append(all, fetchPart{looptime.Stage{Name: name, Of: looptime.Fetch, Waited: scaled(fetch.Waited), Work: scaled(fetch.Work),
			Count: fetch.Count}, looked})
	}
	s := sharesOf(split, in)
	of("on a processor", s.onCPU, split.Fetches)
	if split.QueueKnown == split.Fetches {
		of("waiting for a processor", s.queue, split.Fetches)
		of("blocked", s.blocked, split.Fetches)
		for _, part := range s.in {
			of("blocked: "+string(part.Kind), part.Share, split.Fetches)
		}
	} else {
		of("blocked, or waiting for a processor", s.queue+s.blocked, split.Fetches)
	}
	for _, t := range split.Transforms() {
		if t.Index >= 0 && t.Fetches > 0 {
			of(fmt.Sprintf("transform %d: %s", t.Index, words.Last(t.Class)), t.Share(), t.Fetches)
		}
	}
	return all
}

// shares of the fetches' time, 0 to 1.
type shares struct {
	onCPU, queue, blocked float64
	in                    []offcpu.Part // of blocked; none: it is not known
}

// sharesOf some fetches that were looked at. What the kernel says of all fetches takes
// the place of what was seen in these, among which a rare long wait may not be, unless
// it knows of much less, or of more than there was; the rest is shared as it was seen.
func sharesOf(split *fetches.Split, in *offcpu.Blocked) shares {
	s := shares{onCPU: split.Share(split.OnCPU), queue: split.Share(split.Queue), blocked: split.Share(split.Blocked)}
	const agree, most = 2, 1.1
	all := in.Share(in.Sum())
	if split.QueueKnown < split.Fetches || all <= 0 || all > most || s.blocked > agree*all {
		return s
	}
	all = min(all, 1)
	if busy := s.onCPU + s.queue; busy > 0 {
		s.onCPU, s.queue = s.onCPU/busy*(1-all), s.queue/busy*(1-all)
	}
	s.blocked, s.in = all, in.Parts()
	return s
}

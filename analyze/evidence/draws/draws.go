package draws

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// Draws is what one worker drew from one generator in one pass, inside of its
// fetches.
type Draws struct {
	Worker  *timeline.WorkerPass
	Slot    *Slot
	Spans   []Span // raw outputs whose place on a stream is known, in the order in which they were drawn
	Words   int64  // sum of Spans, in 32-bit words
	Drew    int    // fetches with spans
	Fetches int    // that were seen
	// AtLeast: the state before the first draw was not seen, more may have been drawn.
	AtLeast bool
	// MadeLater: the generator was made after the pass had begun.
	MadeLater bool
	// Ordering: the first fetch is left out, as what it draws may decide which
	// samples come (IterableDataset); the rest may be part of that too.
	Ordering   bool
	OrderDraws bool // there were draws in that fetch
	Reseeded   int  // fetches whose states do not follow from each other
	Unfollowed int  // fetches not looked at when the budget ended
	NearLost   int  // fetches next to rows that are lost
}

// Span is raw outputs of a stream, [From, To) in 32-bit words.
type Span struct {
	Stream        int32
	From, To      int64
	Before, After uint64 // seq of the rows of rng_state around it
}

// Data reports whether these are data draws: in at least half of the fetches, and
// from a generator that is not seeded anew all the time. The latter's numbers
// may be a function of the sample, and are not a stream.
func (d *Draws) Data() bool {
	return 2*d.Drew >= d.Fetches && d.Drew > 0 && 4*d.Reseeded <= d.Drew
}

// Name of the generator in texts.
func (s *Slot) Name() string {
	switch s.Path {
	case "numpy":
		return "np.random"
	case "cv2":
		return "OpenCV's generator"
	}
	return s.Path
}

// of makes the draws of one log. mixed: the rows before a fetch may be lost, so
// that what was drawn by the training loop cannot be told from the fetch's.
func (s *Streams) of(w *timeline.WorkerPass, l *log, mixed bool) *Draws {
	d := &Draws{Worker: w, Slot: l.slot, Drew: l.drew, Fetches: max(w.Windows, l.fetches), AtLeast: l.late, MadeLater: l.made,
		Reseeded: l.broken, Unfollowed: l.unfollowed, NearLost: l.gaps}
	d.Ordering = w.Pass.Loader.Iterable() && l.slot.Role != "transform" && l.slot.Role != "collate"
	if d.Ordering {
		d.Fetches = max(d.Fetches-1, 0)
		d.AtLeast, d.OrderDraws = false, l.drewFirst
	} else if l.drewFirst {
		d.Drew++
	}
	for i := range l.spans {
		x := &l.spans[i]
		if x.first && d.Ordering {
			continue
		}
		if mixed {
			d.NearLost++
			d.Drew = 0
			continue
		}
		stream, offset := s.streams.find(x.stream)
		from, to := x.from+offset, x.to+offset
		d.Words += to - from
		if n := len(d.Spans); n > 0 && d.Spans[n-1].Stream == stream && d.Spans[n-1].To == from {
			d.Spans[n-1].To, d.Spans[n-1].After = to, uint64(x.after)
			continue
		}
		d.Spans = append(d.Spans, Span{stream, from, to, uint64(x.before), uint64(x.after)})
	}
	return d
}

// Slot paths of a module run as a program differ between start methods.
func cleanPath(path string) string { return strings.Replace(path, "__mp_main__.", "__main__.", 1) }

// Paths of the slots of some draws, sorted, each once.
func Paths(draws []*Draws) []string {
	var paths []string
	for _, d := range draws {
		paths = append(paths, d.Slot.Path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

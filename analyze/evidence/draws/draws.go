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
	// Seeded: the first fetch of the pass seeded it, or put another object in its
	// place. With no draws it was left alone after that, or is seeded again in
	// each call: both leave one state after every fetch.
	Seeded     bool
	Reseeded   int // fetches whose states do not follow from each other
	Unfollowed int // fetches not looked at when the budget ended
	NearLost   int // fetches next to rows that are lost

	parts map[uint32]Span // by fetch: the first few
}

// Span is raw outputs of a stream, [From, To) in 32-bit words.
type Span struct {
	Stream        int32
	From, To      int64
	Before, After uint64 // seq of the rows of rng_state around it
}

// Key is what makes two draws comparable: one generator, as the program names
// it. Equal streams in different generators are never a finding.
type Key struct{ Path, Kind string }

// Key of the generator.
func (s *Slot) Key() Key { return Key{s.Path, s.Kind} }

// Data reports whether these are data draws: in at least half of the fetches, and
// from a generator that is not seeded anew all the time. The latter's numbers
// may be a function of the sample, and are not a stream.
func (d *Draws) Data() bool {
	return 2*d.Drew >= d.Fetches && d.Drew > 0 && 4*d.Reseeded <= d.Drew
}

// In is what one fetch drew; ok is false where it drew nothing, or is none of
// the first few of its pass.
func (d *Draws) In(fetch uint32) (Span, bool) {
	s, ok := d.parts[fetch]
	return s, ok
}

// Known is how many fetches of a pass, from its first, In knows of.
const Known = mostParts

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
		Reseeded: l.broken, Unfollowed: l.unfollowed, NearLost: l.gaps, Seeded: l.seeded, parts: map[uint32]Span{}}
	d.Ordering = w.Pass.Loader.Iterable() && l.slot.Role != "collate"
	if d.Ordering {
		d.Fetches = max(d.Fetches-1, 0)
		d.AtLeast, d.OrderDraws = false, l.drewFirst
	} else if l.drewFirst {
		d.Drew++
	}
	for _, x := range l.parts {
		if !mixed {
			stream, offset := s.streams.find(x.stream)
			d.parts[x.fetch] = Span{Stream: stream, From: x.from + offset, To: x.to + offset}
		}
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

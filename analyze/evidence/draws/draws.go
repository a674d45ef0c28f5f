package draws

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Draws is what one worker drew from one generator in one pass, inside of its
// fetches.
type Draws struct {
	Worker  *timeline.WorkerPass
	Slot    *Slot
	Spans   []Span // raw outputs whose place on a stream is known, in the order in which they were drawn
	Words   int64  // sum of Spans, in 32-bit words
	Drew    int    // windows with spans
	Windows int    // windows seen: fetches
	// Late: the state before the first draw was not seen, more may have been drawn.
	Late bool
	// Made: the generator was made after the pass had begun.
	Made bool
	// Ordering: the first window is left out, as what it draws may decide which
	// samples come (IterableDataset); the rest may be part of that too.
	Ordering   bool
	OrderDraws bool // there were draws in that window
	Reseeded   int  // windows whose states do not follow from each other
	Unfollowed int  // windows not looked at when the budget ended
	Gaps       int  // windows next to rows that are lost
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
	return 2*d.Drew >= d.Windows && d.Drew > 0 && 4*d.Reseeded <= d.Drew
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

// Draws resolves what was collected: every generator in every pass of every
// worker that the timeline knows. Nothing can be added afterwards.
func (s *Streams) Draws(t *timeline.Timeline) []*Draws {
	s.resolve.Do(func() {
		s.placeWords()
		s.followMersenne()
		s.all(func(part *traces.Part, l *log) {
			w := t.Worker(part, l.key.proc, l.key.loader, l.key.pass, l.key.worker)
			if w != nil {
				s.drawn = append(s.drawn, s.of(w, l, w.Number < 0 && t.Incomplete(w.Process, "rng_state")))
			}
		})
		for _, p := range s.parts {
			s.Nameless += p.nameless
		}
		s.parts = nil
	})
	return s.drawn
}

// of makes the draws of one log. mixed: the rows before a fetch may be lost, so
// that what was drawn by the training loop cannot be told from the fetch's.
func (s *Streams) of(w *timeline.WorkerPass, l *log, mixed bool) *Draws {
	d := &Draws{Worker: w, Slot: l.slot, Drew: l.drew, Windows: max(w.Windows, l.windows), Late: l.late, Made: l.made, Reseeded: l.broken, Unfollowed: l.unfollowed, Gaps: l.gaps}
	d.Ordering = w.Pass.Loader.Iterable() && l.slot.Role != "transform" && l.slot.Role != "collate"
	if d.Ordering {
		d.Windows = max(d.Windows-1, 0)
		d.Late, d.OrderDraws = false, l.drewFirst
	} else if l.drewFirst {
		d.Drew++
	}
	for i := range l.spans {
		x := &l.spans[i]
		if x.first && d.Ordering {
			continue
		}
		if mixed {
			d.Gaps++
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

// placeWords places the chains of generators of few words on streams.
func (s *Streams) placeWords() {
	var sfc []*sfcChain
	s.all(func(_ *traces.Part, l *log) {
		w := l.others
		if w == nil || len(l.spans) == 0 {
			l.others = nil
			return
		}
		if l.slot.Kind == rng.KindSFC64 {
			for i := range w.chains {
				sfc = append(sfc, &sfcChain{chain: &w.chains[i]})
			}
		}
	})
	// One step of SFC64 is about 1/400 of a block.
	drawn, ok := s.streams.placeSFC64(sfc, s.budget*400)
	s.budget -= drawn / 400
	s.Exhausted = s.Exhausted || !ok
	s.all(func(_ *traces.Part, l *log) {
		w := l.others
		if w == nil {
			return
		}
		streams, offsets := make([]int32, len(w.chains)), make([]int64, len(w.chains))
		for i := range w.chains {
			if g, isSFC := w.chains[i].origin.(rng.SFC64); isSFC {
				streams[i], offsets[i] = sfc[0].stream, g.Position()
				sfc = sfc[1:]
			} else {
				streams[i], offsets[i] = s.streams.place(w.chains[i].origin)
			}
		}
		for i := range l.spans {
			x := &l.spans[i]
			n := x.stream
			x.stream, x.from, x.to = streams[n], x.from+offsets[n], x.to+offsets[n]
		}
		l.others = nil
	})
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

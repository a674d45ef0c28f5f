package fetches

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dptrace/dptrace/traces"
)

// Place is one of a chain of transforms, or (Index -1) the chain.
type Place struct {
	Chain string // where it is: dataset.transform
	Index int32
	Path  string
	Class string
	File  string // of the code that a call of it runs; "" not known
	Line  int32
	Why   string // it is not timed; ""

	loader uint32 // as its process counts
}

// Spent is the time of one place, or of a chain, in the fetches that were timed.
type Spent struct {
	Fetches int // in which it was called
	Calls   int64
	Wall    time.Duration

	share moments
}

// Transform is a place and its time.
type Transform struct {
	Place
	Spent
}

// Deviation is the standard deviation of its share of the single fetches, 0 to 1.
func (s *Spent) Deviation() float64 { return s.share.deviation(s.Fetches) }

// Share is the mean of its shares of the fetches in which it was called, 0 to 1.
func (s *Spent) Share() float64 {
	if s.Fetches == 0 {
		return 0
	}
	return s.share.sum / float64(s.Fetches)
}

func (s *Spent) merge(o *Spent) {
	s.Fetches, s.Calls, s.Wall = s.Fetches+o.Fetches, s.Calls+o.Calls, s.Wall+o.Wall
	s.share.merge(&o.share)
}

// Transforms of a loader's dataset by chain, each chain ahead of its places.
func (s *Split) Transforms() (all []Transform) {
	for place, spent := range s.places {
		all = append(all, Transform{place, *spent})
	}
	slices.SortFunc(all, func(a, b Transform) int {
		return cmp.Or(cmp.Compare(a.Chain, b.Chain), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Why, b.Why))
	})
	return all
}

// Innermost is the places that were timed, but for those that are chains of which
// the places were: their times are parts of each other in no two of them.
func (s *Split) Innermost() (all []Transform) {
	for _, t := range s.Transforms() {
		if t.Index >= 0 && t.Fetches > 0 && !s.Timed(t.Path) {
			all = append(all, t)
		}
	}
	return all
}

// Timed reports whether calls of a chain were.
func (s *Split) Timed(chain string) bool {
	for place, spent := range s.places {
		if place.Chain == chain && place.Index < 0 && spent.Fetches > 0 {
			return true
		}
	}
	return false
}

func (s *Split) at(p Place) *Spent {
	p.loader = 0 // whatever its process called it
	if s.places == nil {
		s.places = map[Place]*Spent{}
	}
	if s.places[p] == nil {
		s.places[p] = &Spent{}
	}
	return s.places[p]
}

// timed takes what a row says of transforms.
func (s *Split) timed(r *traces.FetchSplit, of map[uint32]Place, wall time.Duration) {
	for i, number := range r.Transforms {
		place, known := of[uint32(number)]
		if !known || i >= len(r.Calls) || i >= len(r.SpentNS) || r.SpentNS[i] < 0 {
			continue
		}
		spent := s.at(place)
		took := min(time.Duration(r.SpentNS[i]), wall)
		spent.Fetches++
		spent.Calls += max(r.Calls[i], 0)
		spent.Wall += took
		spent.share.add(took.Seconds() / wall.Seconds())
	}
}

// mostPlaces of one process are kept.
const mostPlaces = 1 << 12

func (p *partRows) place(r *traces.Transform) {
	of := p.places[r.Proc]
	if of == nil {
		of = map[uint32]Place{}
		p.places[r.Proc] = of
	}
	if len(of) < mostPlaces {
		of[r.Transform] = Place{Chain: r.Chain, Index: r.Place, Path: r.Path, Class: r.Class, File: r.File, Line: r.Line, Why: r.Why,
			loader: r.Loader}
	}
}

// moments are the sums from which mean and deviation follow.
type moments struct{ sum, squares float64 }

func (m *moments) add(v float64) { m.sum, m.squares = m.sum+v, m.squares+v*v }

func (m *moments) merge(o *moments) { m.sum, m.squares = m.sum+o.sum, m.squares+o.squares }

// deviation of so many; 0 of fewer than two.
func (m *moments) deviation(n int) float64 {
	if n < 2 {
		return 0
	}
	return math.Sqrt(max(m.squares-m.sum*m.sum/float64(n), 0) / float64(n-1))
}

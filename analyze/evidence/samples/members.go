package samples

import (
	"math"
	"slices"

	"github.com/dptrace/dptrace/analyze/hash"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Members is which samples the loaders of several ranks take, over all passes of
// each loader object. Of a Subset these are samples of the dataset inside of it,
// whichever places they have in the Subset.
type Members struct {
	Shared []*Shared // of pairs of ranks

	lists   []*list
	of      map[loaderObject]*list
	between map[[2]*list]*Shared
}

// list is what one loader object of one rank takes.
type list struct {
	first   *Pass
	passes  int
	samples int               // different ones, in all passes
	most    int               // in one pass
	dataset int               // Origin.Dataset; -1: of several
	places  map[uint32]Origin // by the index in the loader's dataset: of some of them
	shared  []*Shared         // with it as A

	serial  int      // of the sample that is looked at
	indices []uint32 // that this one has here
}

// Shared is what two ranks take, both of them.
type Shared struct {
	PassA, PassB *Pass // the first ones
	A, B         int   // different samples of each
	Samples      int   // that both take
	Moved        int   // of them, at no index that is the same in both
	Length       int   // of the dataset that they come from, as far as it was asked for; 0: of several

	Places  int // indices of which it is known what each of the two has there
	Others  int // of them, with another sample of one dataset
	Foreign int // of them, with samples of two datasets
	Example Place

	Still bool // the passes of each had the same samples
	Anew  bool // a rank has made its loader several times

	a, b *list
}

// Place is one index, and which sample it is on each of two ranks.
type Place struct{ Index, A, B int64 }

// Differ reports whether two ranks go through lists that are not one.
func (s *Shared) Differ() bool { return s.Others+s.Foreign >= enoughContents }

// Alike reports whether two ranks take the very same samples.
func (s *Shared) Alike() bool { return s.Samples == s.A && s.Samples == s.B }

// enoughByChance are expected in common, or their number says nothing.
const enoughByChance = 16

// ByChance reports whether two ranks have as many samples in common as if each had
// drawn its own from all there are; expected is that number.
func (s *Shared) ByChance() (expected float64, yes bool) {
	a, b, n := float64(s.A), float64(s.B), float64(s.Length)
	if n < 2 || a > n || b > n {
		return 0, false
	}
	expected = a * b / n
	deviation := math.Sqrt(expected * (1 - a/n) * (1 - b/n) * n / (n - 1))
	return expected, expected >= enoughByChance && math.Abs(float64(s.Samples)-expected) <= 3*deviation+0.5
}

// Between is what two passes of two ranks share; nil if they were not compared.
func (m *Members) Between(a, b *Pass) *Shared {
	return m.between[[2]*list{m.of[objectOf(a)], m.of[objectOf(b)]}]
}

// mostPlaces are compared, of all ranks of a loader together.
const mostPlaces = 1 << 18

// Members of the loaders of one ID. Each rank is compared with the first one and
// with the one before it: where lists differ, they do so between such two.
func (j *Attribution) Members(ranks timeline.Ranks) *Members {
	m := &Members{of: map[loaderObject]*list{}, between: map[[2]*list]*Shared{}}
	of, total := m.collect(j, ranks)
	m.pair()
	objects := map[*timeline.Loader]int{}
	for _, l := range m.lists {
		objects[l.first.Loader]++
	}
	var halved uint
	for total>>halved > mostPlaces {
		halved++
	}
	c := &counting{of: of, halved: halved}
	if len(m.Shared) > 0 {
		for origin, given := range j.eachOf(ranks.ID()) {
			c.sample(origin, given)
		}
	}
	for _, s := range m.Shared {
		s.finish(j.ends, j.Scale())
		s.Anew = objects[s.PassA.Loader] > 1 || objects[s.PassB.Loader] > 1
	}
	return m
}

// counting is of the lists of some ranks, sample by sample.
type counting struct {
	of     map[int]*passList // by pass in Attribution.Passes
	halved uint              // of places
	serial int               // of the sample
	here   []*list           // that have it
}

// passList is the list that a pass goes through.
type passList struct {
	*list
	samples int // different ones in this pass
	serial  int // of the last of them
}

// sample that was given to some, by At.
func (c *counting) sample(origin Origin, given []Given) {
	c.serial++
	c.here = c.here[:0]
	for _, g := range given {
		p := c.of[g.Pass]
		if p == nil {
			continue
		}
		l := p.list
		if l.serial != c.serial {
			l.serial, l.indices = c.serial, l.indices[:0]
			l.take(origin)
			c.here = append(c.here, l)
		}
		if n := len(l.indices); n == 0 || l.indices[n-1] != g.At {
			l.indices = append(l.indices, g.At)
			if l.first.Object.DatasetID == 0 && hash.Low(uint64(g.At), c.halved) {
				l.places[g.At] = origin
			}
		}
		if p.serial != c.serial {
			p.serial = c.serial
			p.samples++
			l.most = max(l.most, p.samples)
		}
	}
	for _, l := range c.here {
		for _, s := range l.shared {
			if s.b.serial == c.serial {
				s.Samples++
				if !meet(l.indices, s.b.indices) {
					s.Moved++
				}
			}
		}
	}
}

// loaderObject is one DataLoader object of a loader.
type loaderObject struct {
	loader *timeline.Loader
	number uint32
}

func objectOf(p *Pass) loaderObject { return loaderObject{p.Loader, p.Pass.Object} }

// collect the lists: of each pass, that of its loader object.
func (m *Members) collect(j *Attribution, ranks timeline.Ranks) (of map[int]*passList, samples int) {
	of = map[int]*passList{}
	for i, p := range j.Passes {
		if p.Loader.ID != ranks.ID() || p.Abandoned || p.Loader.Rank() < 0 {
			continue
		}
		k := objectOf(p)
		l := m.of[k]
		if l == nil {
			l = &list{first: p, places: map[uint32]Origin{}}
			m.of[k] = l
			m.lists = append(m.lists, l)
		}
		l.passes++
		of[i] = &passList{list: l}
		samples += p.Samples
	}
	return of, samples
}

// pair the lists whose first passes have one number.
func (m *Members) pair() {
	for at := 0; at < len(m.lists); {
		end := at + 1 // they are by number, then rank
		for end < len(m.lists) && m.lists[end].first.Number == m.lists[at].first.Number {
			end++
		}
		for i := at + 1; i < end; i++ {
			m.add(m.lists[at], m.lists[i])
			if i-1 > at {
				m.add(m.lists[i-1], m.lists[i])
			}
		}
		at = end
	}
}

func (m *Members) add(a, b *list) {
	if !timeline.Together(a.first.Loader.Process, b.first.Loader.Process) {
		return
	}
	s := &Shared{PassA: a.first, PassB: b.first, a: a, b: b}
	m.Shared, a.shared = append(m.Shared, s), append(a.shared, s)
	m.between[[2]*list{a, b}] = s
}

func (l *list) take(o Origin) {
	switch {
	case l.samples == 0:
		l.dataset = o.Dataset
	case l.dataset != o.Dataset:
		l.dataset = -1
	}
	l.samples++
}

// still reports whether each pass had the same samples, but for what drop_last
// dropped.
func (l *list) still() bool {
	return l.passes == 1 || l.most+max(int(l.first.Object.BatchSize), 1) > l.samples
}

func (s *Shared) finish(ends map[int]int64, scale int) {
	s.A, s.B, s.Still = s.a.samples, s.b.samples, s.a.still() && s.b.still()
	if s.a.dataset == s.b.dataset && s.a.dataset >= 0 {
		s.Length = int(ends[s.a.dataset]) / scale
	}
	for at, o := range s.a.places {
		p, ok := s.b.places[at]
		if !ok {
			continue
		}
		s.Places++
		switch {
		case o.Dataset != p.Dataset:
			s.Foreign++
		case o.Index != p.Index:
			if s.Others == 0 || int64(at) < s.Example.Index {
				s.Example = Place{int64(at), o.Index, p.Index}
			}
			s.Others++
		}
	}
}

// meet reports whether two ascending lists have a number in common. One of them
// may be far longer than the other.
func meet(a, b []uint32) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for _, n := range a {
		i, found := slices.BinarySearch(b, n)
		if found {
			return true
		}
		b = b[i:]
	}
	return false
}

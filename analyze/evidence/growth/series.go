package growth

import "github.com/dptrace/dptrace/analyze/timeline"

// Point is one look: how long a container was, or how much memory a process had,
// when so many batches had been served.
type Point struct {
	TS     int64
	Loader uint32 // as recorded: of the main process; 0 in workers
	Pass   uint32 // as recorded
	Served int64
	Items  int64
	Bytes  int64 // added since the first look, by estimate
	Shared int64 // of Bytes, in shared memory
	Seq    uint64
}

// Series is the looks at one thing in one process, in their order.
type Series struct {
	Process *timeline.Process
	Worker  int // -1: the main process
	Points  []Point
}

// Shape is how something grew with what was served.
type Shape int

// Shapes, the one first that is judged first.
const (
	Few     Shape = iota // too few looks, or served too little between them
	Still                // it did not grow, or hardly
	Emptied              // it was shorter at a look than before, or is kept at a length
	Plateau              // the last quarter of what was served added little
	Slowing              // the last quarter added less than a quarter of all
	Steady               // it added as much
)

const (
	leastLooks = 4
	leastItems = 16
	// shrunk: to be shorter than this share of what it was is to have been emptied.
	shrunk = 0.95
	// What the last quarter added, as a share of a quarter of all.
	plateau, steady = 0.25, 0.7
)

// outgrown: what is this many times as long as it ever was before it was emptied
// is judged by how it has grown since.
const outgrown = 2

// Emptied is the point since which it has not been emptied, 0: it never was; and
// how long it was at most before.
func (s *Series) Emptied() (since int, most int64) {
	var top int64
	for i, p := range s.Points {
		if float64(p.Items) < shrunk*float64(top) {
			since, most, top = i, max(most, top), 0
		}
		top = max(top, p.Items)
	}
	return since, most
}

// Shape of the series.
func (s *Series) Shape() Shape {
	if len(s.Points) < leastLooks {
		return Few
	}
	since, most := s.Emptied()
	first, last := s.Points[since], s.Points[len(s.Points)-1]
	if since > 0 && (last.Items < outgrown*most || len(s.Points)-since < leastLooks) {
		return Emptied
	}
	served, grown := last.Served-first.Served, last.Items-first.Items
	switch {
	case served < leastLooks:
		return Few
	case grown < leastItems:
		return Still
	}
	late := float64(last.Items) - s.at(float64(last.Served)-float64(served)/4)
	switch share := late / (float64(grown) / 4); {
	case share < plateau:
		return Plateau
	case share < steady:
		return Slowing
	}
	return Steady
}

// at is the length when so much had been served, on the straight line between
// the looks before and after.
func (s *Series) at(served float64) float64 {
	for i := 1; i < len(s.Points); i++ {
		a, b := s.Points[i-1], s.Points[i]
		if float64(b.Served) >= served && b.Served > a.Served {
			return float64(a.Items) + float64(b.Items-a.Items)*(served-float64(a.Served))/float64(b.Served-a.Served)
		}
	}
	return float64(s.Points[len(s.Points)-1].Items)
}

// After is what was added when more than so much had been served.
func (s *Series) After(served int64) float64 {
	return float64(s.Points[len(s.Points)-1].Items) - s.at(float64(served))
}

// Growth of the series in items and bytes, and what was served meanwhile.
func (s *Series) Growth() (items, bytes, served int64) {
	if len(s.Points) == 0 {
		return 0, 0, 0
	}
	first, last := s.Points[0], s.Points[len(s.Points)-1]
	return last.Items - first.Items, last.Bytes - first.Bytes, last.Served - first.Served
}

// Shared is how much of the growth in bytes is in shared memory.
func (s *Series) Shared() int64 {
	if len(s.Points) == 0 {
		return 0
	}
	return s.Points[len(s.Points)-1].Shared - s.Points[0].Shared
}

// Rate is items for each batch in one pass.
type Rate struct {
	Pass   uint32
	Served int64
	Items  int64
}

// PerBatch is how many items one batch added.
func (r Rate) PerBatch() float64 { return float64(r.Items) / float64(max(r.Served, 1)) }

// leastServed is how many batches must have been served between the looks of a
// pass, so that it has a rate.
const leastServed = 4

// Rates of the passes in which there was enough to tell one; of the main process
// the passes of one DataLoader object, of which most are.
func (s *Series) Rates() (rates []Rate) {
	loader := s.loader()
	for i := 1; i < len(s.Points); i++ {
		a, b := s.Points[i-1], s.Points[i]
		if b.Loader != loader {
			continue
		}
		if n := len(rates); n == 0 || rates[n-1].Pass != b.Pass {
			rates = append(rates, Rate{Pass: b.Pass})
		}
		r := &rates[len(rates)-1]
		r.Served, r.Items = r.Served+b.Served-a.Served, r.Items+b.Items-a.Items
	}
	var enough []Rate
	for _, r := range rates {
		if r.Served >= leastServed {
			enough = append(enough, r)
		}
	}
	return enough
}

// loader that most was added under.
func (s *Series) loader() uint32 {
	added := map[uint32]int64{}
	var best uint32
	for i := 1; i < len(s.Points); i++ {
		l := s.Points[i].Loader
		added[l] += s.Points[i].Items - s.Points[i-1].Items
	}
	for i := range s.Points { // in their order, so that equal ones give the same answer
		if l := s.Points[i].Loader; added[l] > added[best] || best == 0 {
			best = l
		}
	}
	return best
}

// sameRate: a pass that adds at least this share of what the first one did grows
// as it did.
const sameRate = 0.8

// Goes reports whether it grew in two passes or more, in the last as fast as in
// the first.
func (s *Series) Goes() bool {
	rates := s.Rates()
	if len(rates) < 2 {
		return false
	}
	first, last := rates[0], rates[len(rates)-1]
	return first.Items > 0 && last.Items >= leastItems/2 && last.PerBatch() >= sameRate*first.PerBatch()
}

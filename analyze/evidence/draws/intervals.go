package draws

import "slices"

// IntervalSet is the union of spans, and for each piece of it who came first.
type IntervalSet struct {
	byStream map[int32][]piece // sorted, disjoint
}

type piece struct {
	from, to int64
	owner    *Draws
}

// Shared is a piece that two draws have in common.
type Shared struct {
	First, Second *Draws
	Stream        int32
	From, To      int64 // 32-bit words
}

// Add puts draws into the set and gives back what of them was in it before.
func (c *IntervalSet) Add(d *Draws) []Shared {
	if c.byStream == nil {
		c.byStream = map[int32][]piece{}
	}
	var shared []Shared
	for _, s := range d.Spans {
		var added []Shared
		c.byStream[s.Stream], added = insert(c.byStream[s.Stream], s, d)
		shared = append(shared, added...)
	}
	return shared
}

// Shares reports whether anything of some draws is in the set.
func (c *IntervalSet) Shares(d *Draws) bool {
	for _, s := range d.Spans {
		pieces := c.byStream[s.Stream]
		if at := firstAfter(pieces, s.From); at < len(pieces) && pieces[at].from < s.To {
			return true
		}
	}
	return false
}

// firstAfter is the first piece that ends after a position.
func firstAfter(pieces []piece, at int64) int {
	lo, _ := slices.BinarySearchFunc(pieces, at, func(p piece, at int64) int {
		if p.to <= at {
			return -1
		}
		return 1
	})
	return lo
}

// Overlaps reports whether two spans have anything in common.
func (s Span) Overlaps(o Span) bool { return s.Stream == o.Stream && s.From < o.To && o.From < s.To }

func insert(pieces []piece, s Span, d *Draws) ([]piece, []Shared) {
	var shared []Shared
	lo := firstAfter(pieces, s.From)
	fresh := make([]piece, 0, 4)
	at, hi := s.From, lo
	for ; hi < len(pieces) && pieces[hi].from < s.To; hi++ {
		p := pieces[hi]
		if at < p.from {
			fresh = append(fresh, piece{at, p.from, d})
		}
		from, to := max(p.from, s.From), min(p.to, s.To)
		shared = append(shared, Shared{p.owner, d, s.Stream, from, to})
		fresh = append(fresh, p)
		at = to
	}
	if at < s.To {
		fresh = append(fresh, piece{at, s.To, d})
	}
	fresh = join(fresh)
	if lo > 0 && len(fresh) > 0 && pieces[lo-1].owner == fresh[0].owner && pieces[lo-1].to == fresh[0].from {
		lo--
		fresh[0].from = pieces[lo].from
	}
	return slices.Replace(pieces, lo, hi, fresh...), shared
}

// join neighbours of one owner.
func join(pieces []piece) []piece {
	out := pieces[:0]
	for _, p := range pieces {
		if n := len(out); n > 0 && out[n-1].owner == p.owner && out[n-1].to == p.from {
			out[n-1].to = p.to
			continue
		}
		out = append(out, p)
	}
	return out
}

// Words is the size of the union.
func (c *IntervalSet) Words() int64 {
	var n int64
	for _, pieces := range c.byStream {
		for _, p := range pieces {
			n += p.to - p.from
		}
	}
	return n
}

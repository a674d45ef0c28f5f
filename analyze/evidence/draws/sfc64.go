package draws

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/rng"
)

// sfcChain is a chain of SFC64 states. Position on its stream is the counter in
// the state, so that equal streams need no offset.
type sfcChain struct {
	chain  *chain
	stream int32
}

// placeSFC64 places all chains of SFC64: those with equal origins at once, the
// others by drawing each distinct one to its end and looking at every counter
// at which another begins. It gives back how many outputs were drawn, and
// false if there were more than limit.
func (p *placement) placeSFC64(chains []*sfcChain, limit int64) (int64, bool) {
	type origin struct {
		state  [4]uint64
		end    uint64 // highest counter
		stream int32
	}
	var origins []*origin
	byState := map[[4]uint64]*origin{}
	for _, c := range chains {
		g := c.chain.origin.(rng.SFC64)
		o := byState[g.State]
		if o == nil {
			o = &origin{state: g.State, stream: p.make(g)}
			byState[g.State] = o
			origins = append(origins, o)
		}
		c.stream = o.stream
		o.end = max(o.end, g.Counter()+uint64(c.chain.end/2))
	}
	slices.SortStableFunc(origins, func(a, b *origin) int { return cmp.Compare(a.state[3], b.state[3]) })
	var drawn int64
	for i, o := range origins {
		g := rng.SFC64{State: o.state}
		for _, next := range origins[i+1:] {
			if next.state[3] > o.end {
				break
			}
			for g.Counter() < next.state[3] { // which may be any number
				if drawn > limit {
					return drawn, false
				}
				g.Uint64()
				drawn++
			}
			if g.State == next.state {
				p.link(next.stream, o.stream, 0)
			}
		}
	}
	return drawn, true
}

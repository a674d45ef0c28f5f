package draws

import (
	"github.com/dptrace/dptrace/analyze/rng"
)

// placement knows the streams, and which of them turned out to be one.
type placement struct {
	streams []stream
	pcg     map[pcgKey][]int32 // by what their states have in common
	philox  map[[2]uint64][]int32
	cv2     map[int64]int32
	sobol   map[[16]byte]int32
}

type pcgKey struct {
	inc  rng.U128
	dxsm bool
}

// stream is a line on which intervals lie, in 32-bit words.
type stream struct {
	origin any   // a state at position 0 (SFC64: at its counter): *rng.Key, rng.PCG, …; nil if none was recorded whole
	parent int32 // the stream that this one is a part of; itself if of none
	offset int64 // position of its 0 on the parent
}

func (p *placement) make(origin any) int32 {
	p.streams = append(p.streams, stream{origin: origin, parent: int32(len(p.streams))})
	return int32(len(p.streams) - 1)
}

// find gives the stream that s is in the end a part of, and where its 0 is.
func (p *placement) find(s int32) (int32, int64) {
	up := p.streams[s].parent
	if up == s {
		return s, 0
	}
	root, offset := p.find(up)
	p.streams[s].parent, p.streams[s].offset = root, p.streams[s].offset+offset
	return root, p.streams[s].offset
}

// link makes part a part of whole, with its 0 at offset.
func (p *placement) link(part, whole int32, offset int64) {
	root, atRoot := p.find(part)
	top, atTop := p.find(whole)
	if root != top {
		p.streams[root].parent, p.streams[root].offset = top, atTop+offset-atRoot
	}
}

// near tries the streams of a list with a distance function, and makes a new
// one with the given origin if none fits.
func (p *placement) near(list []int32, origin any, distance func(from any) (int64, bool)) (_ []int32, s int32, at int64) {
	for _, s := range list {
		if n, ok := distance(p.streams[s].origin); ok {
			return list, s, n
		}
	}
	s = p.make(origin)
	return append(list, s), s, 0
}

// place finds the stream and the position on it of a state of few words.
func (p *placement) place(state any) (int32, int64) {
	if p.pcg == nil {
		p.pcg, p.philox, p.cv2 = map[pcgKey][]int32{}, map[[2]uint64][]int32{}, map[int64]int32{}
		p.sobol = map[[16]byte]int32{}
	}
	var s int32
	var at int64
	switch g := state.(type) {
	case rng.PCG:
		k := pcgKey{g.Inc, g.DXSM}
		p.pcg[k], s, at = p.near(p.pcg[k], g, func(from any) (int64, bool) { f := from.(rng.PCG); return f.Distance(&g) })
	case rng.Philox:
		p.philox[g.Key], s, at = p.near(p.philox[g.Key], g, func(from any) (int64, bool) { f := from.(rng.Philox); return f.Distance(&g) })
	case rng.CV2:
		var ok bool
		if s, ok = p.cv2[g.Seed]; !ok {
			s = p.make(g)
			p.cv2[g.Seed] = s
		}
		at = g.Words()
	case rng.Sobol:
		var ok bool
		if s, ok = p.sobol[g.Sequence]; !ok {
			s = p.make(g)
			p.sobol[g.Sequence] = s
		}
		at = g.Words()
	}
	return s, at
}

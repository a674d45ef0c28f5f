package draws

import "github.com/dptrace/dptrace/analyze/rng"

// farWords is how far from a recorded state outputs are computed.
const farWords = 1 << 30

// Origin is a recorded state of a stream (*rng.Key, rng.PCG, rng.Philox, rng.SFC64
// or rng.CV2), and how many words after it a position of the stream lies (of SFC64
// the position itself, which its state counts). nil: none is known, or too far away.
func (s *Streams) Origin(stream int32, at int64) (state any, words int64) {
	root, offset := s.streams.find(stream)
	state, words = s.streams.streams[root].origin, at-offset
	if sfc, ok := state.(rng.SFC64); ok && words < sfc.Position() || words > farWords || words < -farWords {
		return nil, 0
	}
	return state, words
}

// Outputs computes the n raw outputs of a stream from a position on, as the
// generator gives them out: 32 or 64 bits each. A half-used one is left out.
// It gives nil where no state that leads there is known.
func (s *Streams) Outputs(stream int32, at int64, n int) []uint64 {
	origin, at := s.Origin(stream, at)
	var out []uint64
	switch g := origin.(type) {
	case *rng.Key:
		if at < 0 {
			return nil
		}
		m := rng.MT19937{Key: *g}
		for ; at >= rng.Block; at -= rng.Block {
			m.Key.Next()
		}
		m.Pos = int(at)
		for range n {
			out = append(out, uint64(m.Uint32()))
		}
	case rng.PCG:
		g.Advance(at)
		for range n {
			out = append(out, g.Uint64())
		}
	case rng.Philox:
		g.Advance(at)
		for range n {
			out = append(out, g.Uint64())
		}
	case rng.SFC64:
		for g.Position() < at {
			g.Uint64()
		}
		for range n {
			out = append(out, g.Uint64())
		}
	}
	return out
}

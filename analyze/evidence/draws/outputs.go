package draws

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/rng"
)

// farWords is how far from a recorded state outputs are computed for a text.
const farWords = 1 << 30

// Outputs computes the n raw outputs of a stream from a position on, as the
// generator gives them out: 32 or 64 bits each. A half-used one is left out.
// It gives nil where no state that leads there is known.
func (s *Streams) Outputs(stream int32, at int64, n int) []uint64 {
	stream, base := s.known(stream)
	at -= base
	if stream < 0 || at > farWords || at < -farWords {
		return nil
	}
	var out []uint64
	switch g := s.streams.streams[stream].origin.(type) {
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
		if at < g.Position() {
			return nil
		}
		for g.Position() < at {
			g.Uint64()
		}
		for range n {
			out = append(out, g.Uint64())
		}
	}
	return out
}

// known finds a stream with a recorded state: the one that s became a part of.
func (s *Streams) known(stream int32) (int32, int64) {
	root, offset := s.streams.find(stream)
	if s.streams.streams[root].origin == nil {
		return -1, 0
	}
	return root, offset
}

// Replay is how to get the same outputs by hand: Python that makes the generator
// at a position, or what is known of its state. "" if nothing is.
func (s *Streams) Replay(slot *Slot, stream int32, at int64) string {
	stream, base := s.known(stream)
	at -= base
	if stream < 0 || at > farWords || at < -farWords {
		return ""
	}
	switch g := s.streams.streams[stream].origin.(type) {
	case *rng.Key:
		return replayMersenne(slot, g, at)
	case rng.PCG:
		g.Advance(at)
		return g.Python() + "; g.random_raw(3)"
	case rng.Philox:
		g.Advance(at)
		return g.Python() + "; g.random_raw(3)"
	case rng.SFC64:
		if at < g.Position() {
			return ""
		}
		for g.Position() < at {
			g.Uint64()
		}
		return g.Python() + "; g.random_raw(3)"
	case rng.CV2:
		if g.Seed < 0 {
			return fmt.Sprintf("OpenCV's generator, never seeded, after %d bytes", at*4)
		}
		return fmt.Sprintf("cv2.setRNGSeed(%d), after %d bytes", g.Seed, at*4)
	}
	return ""
}

// replayMersenne names the seed if the state is that of a small seed; 624 words
// are too many to print.
func replayMersenne(slot *Slot, k *rng.Key, at int64) string {
	drawn := at - rng.Block // a seeded generator makes its first block when it is first drawn from
	after := ""
	if drawn > 0 {
		after = fmt.Sprintf(", after %d outputs", drawn)
	}
	if drawn >= 0 {
		if m := rng.SeedMT19937(k[0]); m.Key == *k {
			if strings.HasPrefix(slot.Class, "torch.") || slot.Path == "torch" {
				return fmt.Sprintf("torch.Generator().manual_seed(%d) is in this state%s", k[0], after)
			}
			return fmt.Sprintf("np.random.RandomState(%d) is in this state%s", k[0], after)
		}
		for seed := range uint64(smallSeeds) {
			if m := rng.SeedPython(seed); m.Key == *k {
				return fmt.Sprintf("random.Random(%d) is in this state%s", seed, after)
			}
		}
	}
	return fmt.Sprintf("key words 1 to 4 of the block: %08x %08x %08x %08x, position %d", k[1], k[2], k[3], k[4], at)
}

// smallSeeds is how many seeds of Python's random are tried: a few milliseconds.
const smallSeeds = 2048

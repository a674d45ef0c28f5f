package redraw

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/rng"
)

// replay is how to get the same outputs by hand: Python that makes the generator,
// given a recorded state and how many words after it they begin. Of a twister
// whose seed is not found there are only words of its block, which nobody can
// check by hand.
func replay(slot *draws.Slot, state any, at int64) []finding.Evidence {
	code := ""
	switch g := state.(type) {
	case *rng.Key:
		if code = seed(slot, g, at); code == "" {
			text := fmt.Sprintf("Words 1 to 4 of the generator's block are %08x %08x %08x %08x, its position is %d.", g[1], g[2], g[3], g[4], at)
			return []finding.Evidence{{Text: text, Detail: true}}
		}
	case rng.PCG:
		g.Advance(at)
		code = g.Python() + "; g.random_raw(3)"
	case rng.Philox:
		g.Advance(at)
		code = g.Python() + "; g.random_raw(3)"
	case rng.SFC64:
		for g.Position() < at {
			g.Uint64()
		}
		code = g.Python() + "; g.random_raw(3)"
	case rng.CV2:
		code = fmt.Sprintf("cv2.setRNGSeed(%d), after %d bytes", g.Seed, at*4)
		if g.Seed < 0 {
			code = fmt.Sprintf("OpenCV's generator, never seeded, after %d bytes", at*4)
		}
	default:
		return nil
	}
	return []finding.Evidence{{Text: "To see them by hand: " + code + "."}}
}

// smallSeeds is how many seeds of Python's random are tried: a few milliseconds.
const smallSeeds = 2048

// seed names the seed of a twister's block; "" if it is that of none.
func seed(slot *draws.Slot, k *rng.Key, at int64) string {
	drawn := at - rng.Block // a seeded generator makes its first block when it is first drawn from
	if drawn < 0 {
		return ""
	}
	after := ""
	if drawn > 0 {
		after = fmt.Sprintf(", after %d outputs", drawn)
	}
	if m := rng.SeedMT19937(k[0]); m.Key == *k {
		if strings.HasPrefix(slot.Class, "torch.") || slot.Path == "torch" {
			return fmt.Sprintf("torch.Generator().manual_seed(%d) is in this state%s", k[0], after)
		}
		return fmt.Sprintf("np.random.RandomState(%d) is in this state%s", k[0], after)
	}
	for n := range uint64(smallSeeds) {
		if m := rng.SeedPython(n); m.Key == *k {
			return fmt.Sprintf("random.Random(%d) is in this state%s", n, after)
		}
	}
	return ""
}

package redraw

import (
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/rng"
)

// TestReplay: what a person can type is said, words of a block are marked as
// what only a program can use.
func TestReplay(t *testing.T) {
	numpy, torch := &draws.Slot{Path: "numpy"}, &draws.Slot{Path: "dataset.g", Class: "torch._C.Generator"}
	seeded, python := rng.SeedMT19937(889991), rng.SeedPython(7)
	unknown := rng.SeedMT19937(1)
	unknown.Key[600]++
	for _, c := range []struct {
		slot   *draws.Slot
		state  any
		at     int64
		want   string // of the text; "" nothing is said
		detail bool
	}{
		{numpy, &seeded.Key, rng.Block, "To see them by hand: np.random.RandomState(889991) is in this state.", false},
		{torch, &seeded.Key, rng.Block + 5, "torch.Generator().manual_seed(889991) is in this state, after 5 outputs.", false},
		{&draws.Slot{Path: "random"}, &python.Key, rng.Block, "random.Random(7) is in this state.", false},
		{numpy, &unknown.Key, 30, "Words 1 to 4 of the generator's block are ", true},
		{numpy, &seeded.Key, 30, "its position is 30.", true}, // drawn from a block that is the seed's own state: before its first
		{numpy, rng.PCG{}, 0, "To see them by hand: g = np.random.PCG64(); g.state = ", false},
		{numpy, rng.Philox{}, 0, "To see them by hand: g = np.random.Philox(); g.state = ", false},
		{numpy, rng.SFC64{}, 0, "To see them by hand: g = np.random.SFC64(); g.state = ", false},
		{numpy, rng.CV2{Seed: -1}, 3, "OpenCV's generator, never seeded, after 12 bytes.", false},
		{numpy, rng.CV2{Seed: 4}, 3, "cv2.setRNGSeed(4), after 12 bytes.", false},
		{numpy, nil, 0, "", false},
	} {
		list := replay(c.slot, c.state, c.at)
		if c.want == "" {
			if len(list) > 0 {
				t.Errorf("%T: %v", c.state, list)
			}
			continue
		}
		if len(list) != 1 || !strings.Contains(list[0].Text, c.want) || list[0].Detail != c.detail {
			t.Errorf("%T at %d: %+v, want %q", c.state, c.at, list, c.want)
		}
	}
}

package samples

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSort against one goroutine: entries of all kinds of order.
func TestSort(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for name, next := range map[string]func(i int) entry{
		"of many ids":      func(int) entry { return entry{r.Uint64N(1 << 40), r.Uint32(), r.Uint32N(100), r.Uint32N(100)} },
		"of a few ids":     func(int) entry { return entry{r.Uint64N(3), r.Uint32N(3), r.Uint32N(100), r.Uint32N(100)} },
		"of one id":        func(int) entry { return entry{7, 7, r.Uint32N(1000), r.Uint32()} },
		"equal":            func(int) entry { return entry{7, 7, 7, 7} },
		"equal but a few":  func(i int) entry { return entry{7, 7, 7, uint32(i % 1000 / 999 * i)} },
		"sorted":           func(i int) entry { return entry{uint64(i), 0, 0, 0} },
		"the wrong way":    func(i int) entry { return entry{uint64(1<<30 - i), 0, 0, 0} },
		"of several loops": func(i int) entry { return entry{uint64(i % 50_000), uint32(i), 0, 0} },
	} {
		for _, n := range []int{0, sortedAlone, 3*sortedAlone + 1} {
			var list []entry
			for i := range n {
				list = append(list, next(i))
			}
			want := slices.SortedFunc(slices.Values(list), compareEntries)
			if sortEntries(list); !slices.Equal(list, want) {
				t.Errorf("%d entries, %s: not sorted", n, name)
			}
		}
	}
}

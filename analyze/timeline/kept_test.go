package timeline

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// TestMoments: times come back rounded down, by less than a thousandth of a pass.
func TestMoments(t *testing.T) {
	var m moments
	begin := int64(5e18)
	at := []int64{begin, begin + 1, begin + 5000, begin + 3600e9, begin + 30*24*3600e9}
	for i, ns := range at {
		m.set(2*i, ns)
		m.set(2*i, ns+1e15)
	}
	for i, ns := range at {
		if got := m.get(2 * i); got > ns || ns-got > 30*24*3600e9/1e6 {
			t.Errorf("%d: %d, want %d", i, got, ns)
		}
	}
	if m.get(1) != 0 || m.get(-1) != 0 || m.get(99) != 0 {
		t.Error("of others nothing is known")
	}
	m.set(20, begin-100)
	if got := m.get(20); got > begin {
		t.Errorf("before the first: %d", got)
	}
}

// TestMomentsPacked: what is kept of many is what would be kept of each by itself, in whichever order they come.
func TestMomentsPacked(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func(i int) (int, int64){
		"even":        func(i int) (int, int64) { return i, 8e6 },
		"uneven":      func(i int) (int, int64) { return i, r.Int64N(16e6) },
		"backwards":   func(i int) (int, int64) { return 5000 - i, 1e6 },
		"with gaps":   func(i int) (int, int64) { return 3*i + r.IntN(2), r.Int64N(1e9) },
		"all over":    func(int) (int, int64) { return r.IntN(20_000), r.Int64N(1e6) - 5e5 },
		"for days":    func(i int) (int, int64) { return i, 60e9 + r.Int64N(1e9) },
		"all at once": func(i int) (int, int64) { return i, 0 },
		"one late":    func(i int) (int, int64) { return i, map[bool]int64{true: 4000e9}[i%1000 == 999] + 1e3 },
	} {
		var m moments
		truth := map[int]int64{}
		ns := int64(1e15)
		for i := range 5000 {
			at, step := next(i)
			ns = max(ns+step, m.begin+1)
			if _, ok := truth[at]; !ok {
				truth[at] = ns
			}
			m.set(at, ns)
		}
		for i := range 20_000 {
			got, want := m.get(i), truth[i]
			if want == 0 && got != 0 || want != 0 && (got > want || want-got >= 1<<m.shift || got == 0 || !m.tells(i, want)) {
				t.Fatalf("%s: %d: %d, want %d, unit %d", name, i, got, want, 1<<m.shift)
			}
		}
	}
}

// TestMomentsRoom: steps that are nearly even take a byte or two each.
func TestMomentsRoom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var m moments
	ns, n := int64(1e15), 100_000
	for i := range n {
		ns += 8e6 + r.Int64N(2e6)
		m.set(i, ns)
	}
	room := 0
	for _, b := range m.blocks {
		room += 32 + cap(b.packed)
		if b.plain != nil {
			room += 4 * perBlock
		}
	}
	if room > 2*n {
		t.Errorf("%d bytes for %d moments", room, n)
	}
}

// TestCounts: equal values take no room, and of what is over the limit nothing is known.
func TestCounts(t *testing.T) {
	var c counts
	for range 1_000_000 {
		c.add(8)
	}
	c.add(3)
	if len(c.runs) != 2 || c.get(0) != 8 || c.get(999_999) != 8 || c.get(1_000_000) != 3 || c.get(1_000_001) != -1 || c.get(-1) != -1 {
		t.Errorf("%d runs", len(c.runs))
	}
	for i := range 3 * mostRuns {
		c.add(int32(i % 7))
	}
	if len(c.runs) > mostRuns+1 || c.get(1_000_002) != 1 || c.get(1_000_001+2*mostRuns) != -1 || fmt.Sprint(c.get(c.n-1)) != "-1" {
		t.Errorf("%d runs", len(c.runs))
	}
}

// TestCountsCoded: values that change all the time take a byte each, as long as they are few, and are all known.
func TestCountsCoded(t *testing.T) {
	for different, known := range map[int]int{2: 300_000, 3: 300_000, 256: 300_000, 257: mostRuns, 1000: mostRuns} {
		var c counts
		for i := range 300_000 {
			c.add(int32(i % different))
		}
		if coded := c.codes != nil; coded != (different <= mostValues) {
			t.Errorf("%d values: coded %v", different, coded)
		}
		for i := range 300_000 {
			want := i % different
			if i >= known {
				want = -1
			}
			if got := c.get(i); got != want {
				t.Fatalf("%d values: %d is %d, want %d", different, i, got, want)
			}
		}
		if c.get(300_000) != -1 || c.get(-1) != -1 {
			t.Errorf("%d values: of others nothing is known", different)
		}
	}
	var c counts // runs first, then a value more than there are codes
	for i := range 1_000 {
		c.add(int32(i % 256))
	}
	c.add(-1)
	c.add(7)
	if c.codes != nil || c.get(0) != 0 || c.get(999) != 999%256 || c.get(1000) != -1 || c.get(1001) != 7 {
		t.Errorf("%d runs, %d codes", len(c.runs), len(c.codes))
	}
}

// TestSteppedAt: when the step after a delivery was taken is kept once, wherever it is, and is right whether backward calls
// are known, or become unknown, or did not give the step its gradients.
func TestSteppedAt(t *testing.T) {
	const n = 1000
	for name, how := range map[string]func(i int) (watched, grads bool){
		"watched":        func(int) (bool, bool) { return true, true },
		"not watched":    func(int) (bool, bool) { return false, false },
		"not any more":   func(i int) (bool, bool) { return i < n/2, i < n/2 },
		"without them":   func(int) (bool, bool) { return true, false },
		"some with them": func(i int) (bool, bool) { return true, i%3 == 0 },
	} {
		pr := &procRows{byPass: map[passKey]*passRows{}}
		var called [n]int64
		ns := int64(1e15)
		for i := range n + 1 {
			watched, grads := how(i)
			r := &traces.BatchNext{Loader: 1, Batch: uint32(i), Status: "ok", Grad: true, Optimizer: 1, Watched: watched}
			r.CallNS, r.TsNS = ns, ns+1e6
			r.Steps, r.Backwards = uint64(i), uint64(i)
			if grads && i > 0 {
				r.GradsFrom, r.GradsTo = uint64(i-1), uint64(i)
			}
			if i > 0 {
				called[i-1] = ns
			}
			if i == n {
				r.Status = "exit"
			}
			pr.next(r)
			ns += 7_654_321
		}
		ps := pr.byPass[passKey{1, 0}]
		for i, want := range called {
			got := ps.next.steppedAt(i)
			if !ps.next.followed.has(i) || got > want || want-got >= 1<<10 {
				t.Fatalf("%s: delivery %d: %d, want %d", name, i, got, want)
			}
		}
		kept := 0
		for i := range n {
			if ps.next.times.get(i) != 0 {
				kept++
			}
		}
		if name == "watched" && kept > 0 || name == "not watched" && kept != n {
			t.Errorf("%s: %d times are kept twice", name, kept)
		}
	}
}

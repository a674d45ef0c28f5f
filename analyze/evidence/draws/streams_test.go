package draws_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/analyze/collect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

var slot = Slot{Path: "dataset.rng", Owner: "__main__.Points", Role: "dataset"}

// play one process, and resolve its streams.
func play(t *testing.T, budget int64, l Loader, passes ...Pass) (*draws.Streams, []*draws.Draws) {
	t.Helper()
	r := NewRun(t)
	o := r.Process(-1, 0).Open(l)
	for _, p := range passes {
		o.Pass(p)
	}
	r.Seal()
	return resolve(t, budget, r.Open(t), nil)
}

// resolve reads a run; drop leaves rows out, and may change others.
func resolve(t *testing.T, budget int64, run *traces.Run, drop func(*traces.RngState) bool) (*draws.Streams, []*draws.Draws) {
	t.Helper()
	b, c := timeline.NewBuilder(), draws.New(budget)
	if err := run.Each(nil, func(batch traces.Batch) error {
		if rows, ok := batch.Rows.([]traces.RngState); ok && drop != nil {
			var kept []traces.RngState
			for _, r := range rows {
				if !drop(&r) {
					kept = append(kept, r)
				}
			}
			batch.Rows = kept
		}
		b.Add(batch)
		c.Add(batch)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	built := b.Build(&collect.Evidence{Run: &traces.Run{}})
	s := c.Resolve(built)
	var drawn []*draws.Draws
	for _, l := range built.Loaders {
		drawn = append(drawn, s.Of(l)...)
	}
	return s, drawn
}

func one(g func(pass, worker int) *Gen) func(pass, worker int) []*Gen {
	return func(pass, worker int) []*Gen { return []*Gen{g(pass, worker)} }
}

func draw(n int) func(pass, worker, window int, g []*Gen) {
	return func(_, _, _ int, gens []*Gen) { gens[0].Draw(n) }
}

var kinds = map[string]func(seed uint64) *Gen{
	"mt19937": func(seed uint64) *Gen { return MT(uint32(seed)) }, "pcg64": PCG, "pcg64dxsm": DXSM, "philox": Philox, "sfc64": SFC,
	"cv2": func(seed uint64) *Gen { return CV2(int64(seed)) }, "sobol": Sobol,
}

// TestCounts: as many words as were drawn, whatever the size of a fetch, with
// halves of 64-bit outputs, and within, at and across blocks.
func TestCounts(t *testing.T) {
	for name, seed := range kinds {
		for _, n := range []int{1, 3, 156, 311, 624, 625, 5000} {
			_, drawn := play(t, draws.DefaultBudget, Loader{Workers: 2, Batches: 7, Slots: []Slot{slot}, Fetch: draw(n),
				Start: one(func(_, worker int) *Gen { return seed(uint64(worker)) })}, Train)
			if len(drawn) != 2 {
				t.Fatalf("%s: %d draws", name, len(drawn))
			}
			for _, d := range drawn {
				if d.Words != int64(7*n) || d.Drew != 7 || d.Fetches != 7 || d.AtLeast || len(d.Spans) != 1 || !d.Data() {
					t.Errorf("%s, %d a fetch: %+v", name, n, *d)
				}
			}
			if drawn[0].Spans[0].Stream == drawn[1].Spans[0].Stream {
				t.Errorf("%s: two seeds, one stream", name)
			}
		}
	}
}

// TestPlaces: parts of one stream lie where they were drawn, in whichever order
// their origins come.
func TestPlaces(t *testing.T) {
	for name, seed := range kinds {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 0, 1}} {
			_, drawn := play(t, draws.DefaultBudget, Loader{Workers: 3, Slots: []Slot{slot}, Fetch: draw(1001),
				Start: one(func(_, worker int) *Gen {
					g := seed(4)
					g.Draw(4000 * order[worker]) // each draws 4004: the last 4 are those of the next
					return g
				})}, Train)
			for i, d := range drawn {
				s, first := d.Spans[0], drawn[0].Spans[0]
				if s.Stream != first.Stream || s.From-first.From != int64(4000*(order[i]-order[0])) || s.To-s.From != 4004 {
					t.Errorf("%s, order %v: worker %d drew %+v, worker 0 %+v", name, order, i, s, first)
				}
			}
		}
	}
}

// TestLoop: what the training loop draws between two fetches is no data, but
// does not break the stream either.
func TestLoop(t *testing.T) {
	for name, seed := range kinds {
		_, drawn := play(t, draws.DefaultBudget, Loader{Slots: []Slot{slot}, Fetch: draw(30), Start: one(func(int, int) *Gen { return seed(1) }),
			Loop: func(_, _ int, g []*Gen) { g[0].Draw(2000) }}, Train)
		d := drawn[0]
		if d.Words != 120 || len(d.Spans) != 4 || d.Spans[3].Stream != d.Spans[0].Stream || d.Spans[1].From-d.Spans[0].To != 2000 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestSeededAgain: no interval lies between two states that stepping does not
// join, and a generator that is seeded all the time has no data draws.
func TestSeededAgain(t *testing.T) {
	for name, seed := range kinds {
		_, drawn := play(t, draws.DefaultBudget, Loader{Workers: 1, Batches: 8, Slots: []Slot{slot}, Start: one(func(int, int) *Gen { return seed(1) }),
			Fetch: func(_, _, window int, g []*Gen) {
				g[0].Set(seed(uint64(100 + window)))
				g[0].Draw(700)
			}}, Train)
		if d := drawn[0]; d.Words != 0 || d.Reseeded != 7 || d.Data() {
			t.Errorf("%s, in each fetch: %+v", name, d)
		}
		_, drawn = play(t, draws.DefaultBudget, Loader{Workers: 1, Batches: 12, Slots: []Slot{slot}, Start: one(func(int, int) *Gen { return seed(1) }),
			Fetch: func(_, _, window int, g []*Gen) {
				if window == 5 {
					g[0].Set(seed(2))
				}
				g[0].Draw(8)
			}}, Train)
		if d := drawn[0]; d.Words != 88 || d.Reseeded != 1 || !d.AtLeast || !d.Data() || len(d.Spans) != 2 || d.Spans[0].Stream == d.Spans[1].Stream {
			t.Errorf("%s, once: %+v", name, d)
		}
	}
}

// TestSetBack: put back to its own beginning in each pass of the main process.
func TestSetBack(t *testing.T) {
	for name, seed := range kinds {
		_, drawn := play(t, draws.DefaultBudget, Loader{Slots: []Slot{slot}, Fetch: draw(700), Start: one(func(int, int) *Gen { return seed(1) })}, Train, Train)
		if len(drawn) != 2 || fmt.Sprint(drawn[0].Spans[0].From, drawn[0].Spans[0].Stream) != fmt.Sprint(drawn[1].Spans[0].From, drawn[1].Spans[0].Stream) {
			t.Errorf("%s: %+v %+v", name, drawn[0], drawn[1])
		}
	}
}

// TestBudget: what is not followed is counted, and what was followed stays.
func TestBudget(t *testing.T) {
	l := Loader{Workers: 2, Batches: 10, Slots: []Slot{slot}, Fetch: draw(6240), Start: one(func(_, worker int) *Gen { return MT(uint32(worker)) })}
	s, drawn := play(t, 150, l, Train)
	if !s.Exhausted {
		t.Error("150 blocks were enough for 200")
	}
	words, unfollowed := int64(0), 0
	for _, d := range drawn {
		words += d.Words
		unfollowed += d.Unfollowed
	}
	if unfollowed != 5 || words != 15*6240 {
		t.Errorf("%d words, %d fetches not followed", words, unfollowed)
	}
	if gap := s.Gap(timeline.Ranks{drawn[0].Worker.Pass.Loader}); gap != "so much was drawn that 5 fetches were left out of the comparison" {
		t.Errorf("gap %q", gap)
	}
	if s, drawn := play(t, 202, l, Train); s.Exhausted || s.Gap(nil) != "" || drawn[0].Unfollowed+drawn[1].Unfollowed > 0 {
		t.Error("202 blocks were not enough for 200")
	}
	// Equal generators are stepped once.
	l.Start = one(func(int, int) *Gen { return MT(3) })
	l.Workers = 20
	if s, _ := play(t, 102, l, Train, Train, Train); s.Exhausted {
		t.Error("equal generators were stepped one by one")
	}
}

// TestBudgetOfSFC64: a state that may be so far ahead that to step there takes
// more than the budget is not looked for; nor is it called seeded anew.
func TestBudgetOfSFC64(t *testing.T) {
	l := Loader{Workers: 2, Batches: 10, Slots: []Slot{slot}, Fetch: draw(100),
		Start: one(func(_, worker int) *Gen { return SFC(uint64(worker)) })}
	r := NewRun(t)
	r.Process(-1, 0).Open(l).Pass(Train)
	r.Seal()
	run := r.Open(t)
	for _, c := range []struct {
		name       string
		budget     int64
		ahead      uint64 // where the counter of the last states is
		micros     int64  // that the fetch is said to have taken
		unfollowed int
		seeded     int // anew
	}{
		{"as it was", draws.DefaultBudget, 0, 0, 0, 0},
		{"a budget of 16 of 20 fetches", 2, 0, 0, 4, 0},
		{"a counter that nothing reaches", draws.DefaultBudget, 1 << 63, 1 << 50, 0, 4}, // there and back
		{"a counter that hours reach", draws.DefaultBudget, 1 << 42, 1 << 50, 2, 2},
	} {
		s, drawn := resolve(t, c.budget, run, func(row *traces.RngState) bool {
			if c.ahead > 0 && row.Fetch == 5 && row.When == "after" {
				row.Raw = binary.LittleEndian.AppendUint64(slices.Clone(row.Raw[:24]), c.ahead)
				row.Raw = append(row.Raw, make([]byte, 8)...)
				row.DurNS = c.micros
			}
			return false
		})
		unfollowed, seeded := 0, 0
		for _, d := range drawn {
			unfollowed, seeded = unfollowed+d.Unfollowed, seeded+d.Reseeded
		}
		if unfollowed != c.unfollowed || s.Exhausted != (c.unfollowed > 0) || seeded != c.seeded {
			t.Errorf("%s: %d fetches not followed, %d seeded anew, exhausted %v", c.name, unfollowed, seeded, s.Exhausted)
		}
	}
}

// TestLostRows: rows that are missing in the middle make a gap, not an interval.
func TestLostRows(t *testing.T) {
	for name, seed := range kinds {
		r := NewRun(t)
		r.Process(-1, 0).Open(Loader{Workers: 1, Batches: 8, Slots: []Slot{slot}, Fetch: draw(30), Start: one(func(int, int) *Gen { return seed(1) })}).Pass(Train)
		r.Seal()
		s, drawn := resolve(t, draws.DefaultBudget, r.Open(t), func(r *traces.RngState) bool { return r.Seq == 4 || r.Seq == 5 })
		if d := drawn[0]; d.Words != 5*30 || d.NearLost != 1 || len(d.Spans) != 2 {
			t.Errorf("%s: %+v", name, d)
		}
		if gap := s.Gap(nil); gap != "records were lost next to 1 fetches" {
			t.Errorf("%s: gap %q", name, gap)
		}
	}
}

// TestNameless: a state of a generator whose row is lost is a gap of all loaders.
func TestNameless(t *testing.T) {
	c := draws.New(draws.DefaultBudget)
	c.Add(traces.Batch{Part: &traces.Part{}, Rows: []traces.RngState{{Slot: 7, When: "after"}}})
	if gap := c.Resolve(&timeline.Timeline{}).Gap(timeline.Ranks{}); gap != "1 states are of generators whose names were lost" {
		t.Errorf("gap %q", gap)
	}
}

// TestOutputs: the outputs printed as evidence are those that are drawn next.
func TestOutputs(t *testing.T) {
	for name, seed := range kinds {
		if name == "cv2" || name == "sobol" {
			continue // cannot be read, only counted
		}
		s, drawn := play(t, draws.DefaultBudget, Loader{Workers: 1, Slots: []Slot{slot}, Fetch: draw(1000), Start: one(func(int, int) *Gen { return seed(1) })}, Train)
		x := drawn[0].Spans[0]
		for _, skip := range []int{0, 2, 622, 624, 1300} {
			g := seed(1)
			g.Draw(skip)
			want := g.Next(3)
			if got := s.Outputs(x.Stream, x.From+int64(skip), 3); !slices.Equal(got, want) {
				t.Errorf("%s after %d words: %x, want %x", name, skip, got, want)
			}
		}
		if state, words := s.Origin(x.Stream, x.From); state == nil || words < 0 {
			t.Errorf("%s: %v and %d words to it", name, state, words)
		}
	}
}

// TestJumps: what a quasi-random engine skips in a fetch was not drawn.
func TestJumps(t *testing.T) {
	_, drawn := play(t, draws.DefaultBudget, Loader{Workers: 2, Batches: 4, Slots: []Slot{slot}, Start: one(func(int, int) *Gen { return Sobol(1) }),
		Fetch: func(_, worker, window int, g []*Gen) {
			if window == 0 {
				g[0].Jump(1000 * worker)
			}
			g[0].Draw(8)
		}}, Train)
	var set draws.IntervalSet
	for _, d := range drawn {
		if shared := set.Add(d); len(shared) > 0 {
			t.Errorf("worker %d drew what another did: %+v", d.Worker.Number, shared)
		}
		if d.Words != 3*8 {
			t.Errorf("worker %d drew %d words", d.Worker.Number, d.Words)
		}
	}
}

package looptime_test

import (
	"archive/zip"
	"math"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	. "github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// loopOf is the loop over the first loader of a recorded trace.
func loopOf(t *testing.T, name string) *Loop {
	t.Helper()
	archive, err := zip.OpenReader("testdata/" + name + ".dptrace.zip")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { archive.Close() })
	run, err := traces.OpenFS(archive, ".")
	if err != nil {
		t.Fatal(err)
	}
	e, err := collect.Read(run, Source)
	if err != nil {
		t.Fatal(err)
	}
	l := collect.Of(e, Source).Of(collect.Of(e, timeline.Source).ByLoader()[0])
	if l == nil {
		t.Fatal("no loop")
	}
	return l
}

// TestTruth: programs whose stages take known times, recorded once. That the stage is
// named which limits, and how long it took: what is slept takes a little longer.
func TestTruth(t *testing.T) {
	for _, c := range []struct {
		name, limits string
		mean         time.Duration // of the stage's work on a batch, or of the step; 0: not compared
		share        [2]float64    // of the loop's time that is waited
	}{
		{"fetch", Fetch, 400 * time.Millisecond, [2]float64{0.8, 1}},
		{"inline", Fetch, 400 * time.Millisecond, [2]float64{0.9, 1}},
		{"collate", Collate, 100 * time.Millisecond, [2]float64{0.8, 1}},
		{"sampler", Sampler, 100 * time.Millisecond, [2]float64{0.9, 1}},
		{"consumer", "", 100 * time.Millisecond, [2]float64{0, 0.1}},
		{"worker", Fetch, 0, [2]float64{0.8, 1}},
		{"rank", Fetch, 0, [2]float64{0.7, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := loopOf(t, c.name)
			if s := l.Share(); s < c.share[0] || s > c.share[1] {
				t.Errorf("waited for %.3f of the time, want %v", s, c.share)
			}
			got := l.Step() / time.Duration(l.Delivered)
			if c.limits != "" {
				if l.Stages[0].Name != c.limits {
					t.Errorf("limits: %+v, want %s", l.Stages, c.limits)
				}
				got = l.Stages[0].Mean()
			}
			if off := got.Seconds()/c.mean.Seconds() - 1; c.mean > 0 && math.Abs(off) > 0.05 {
				t.Errorf("%v for a batch, want %v", got, c.mean)
			}
			var sum time.Duration
			for _, s := range l.Stages {
				sum += s.Waited
			}
			if math.Abs(sum.Seconds()-l.Waited.Seconds()) > 0.01*l.Waited.Seconds() {
				t.Errorf("the stages are %v, and %v was waited", sum, l.Waited)
			}
		})
	}
}

func TestSlowWorkerAndRank(t *testing.T) {
	if s := loopOf(t, "worker").Stragglers(); len(s) != 1 || s[0].Worker != 1 || s[0].Mean < 290*time.Millisecond || s[0].Others > 60*time.Millisecond {
		t.Errorf("stragglers %+v, want worker 1 with 300 ms, the others 40", s)
	}
	s := loopOf(t, "rank").Stragglers()
	if len(s) != 1 || s[0].Rank != 1 || s[0].Worker != -1 {
		t.Errorf("stragglers %+v, want rank 1", s)
	}
	if s := loopOf(t, "fetch").Stragglers(); len(s) > 0 {
		t.Errorf("stragglers %+v", s)
	}
}

func TestSlowSamples(t *testing.T) {
	l := loopOf(t, "sample")
	if got := l.Ranks[0].Repeat; !slices.Equal(got, []int64{17, 90}) {
		t.Errorf("samples %v, want 17 and 90: %+v", got, l.Ranks[0].Slow)
	}
	if got := l.Ranks[0].Files; len(got) != 2 || path.Base(got[0]) != "17.txt" || path.Base(got[1]) != "90.txt" {
		t.Errorf("files %q, want 17.txt and 90.txt", got)
	}
	for _, s := range l.Ranks[0].Slow {
		if len(s.Files) != len(s.Indices) {
			t.Errorf("samples %v, files %q", s.Indices, s.Files)
		}
	}
	if r := loopOf(t, "fetch").Ranks[0]; len(r.Repeat)+len(r.Files) > 0 {
		t.Errorf("samples %v, files %q", r.Repeat, r.Files)
	}
}

// TestWhatIf: what is foreseen of a change is what came of it when it was made.
func TestWhatIf(t *testing.T) {
	made := map[int]float64{}
	for _, workers := range []int{0, 2, 4} {
		l := loopOf(t, "whatif-"+string(rune('0'+workers)))
		x := l.Ranks[0].Passes[0]
		made[workers] = (x.Start.All - x.Start.Workers + x.Total).Seconds() / float64(x.Batches.Delivered+1) // with the first batch: they come in groups
	}
	for _, c := range []struct{ from, to int }{{0, 2}, {0, 4}, {2, 4}, {4, 2}} {
		f, why := loopOf(t, "whatif-"+string(rune('0'+c.from))).Predict(Change{Workers: c.to})
		if why != "" {
			t.Errorf("%d -> %d workers: %s", c.from, c.to, why)
			continue
		}
		said, is := made[c.from]/f.Gain(), made[c.to]
		t.Logf("%d -> %d workers: said %.1f ms, %.1f ms measured", c.from, c.to, 1e3*said, 1e3*is)
		if math.Abs(said/is-1) > 0.1 {
			t.Errorf("%d -> %d workers: said %.1f ms for a batch, measured %.1f", c.from, c.to, 1e3*said, 1e3*is)
		}
	}
}

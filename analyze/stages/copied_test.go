package stages_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// copying is a process without workers whose batches are copied. It has as many rows as a test writes, in this order.
type copying struct {
	*detecttest.Run
	proc uint32
}

func copies(run *detecttest.Run, rank int) copying {
	c := copying{run, run.Process(rank, 2).Proc}
	c.Add(c.proc, traces.Loader{Head: at(1), Loader: 1, Length: 8, BatchSize: 1, File: "/a.py", Line: 7})
	c.Add(c.proc, traces.Pass{Head: at(1), Loader: 1, Phase: "begin"})
	return c
}

// next is a delivery: next() was called a ms before.
func (c copying) next(ts int64, batch uint32, status string) {
	c.Add(c.proc, traces.BatchNext{Head: at(ts), Loader: 1, Batch: batch, Worker: -1, Status: status, CallNS: (ts - 1) * ms})
	if status != "ok" {
		return
	}
	c.Add(c.proc, traces.BatchFetch{Head: at(ts - 1), Loader: 1, Worker: -1, Batch: batch, FetchNS: ms / 2, Samples: 1})
}

// copy takes 2 ms; change says what is special about it.
func (c copying) copy(ts int64, change func(*traces.Copy)) {
	row := traces.Copy{Head: at(ts), Main: true, Direction: "to-device", Bytes: 1 << 20, CallNS: 2 * ms, GapNS: 50_000, Next: "launch"}
	if change != nil {
		change(&row)
	}
	c.Add(c.proc, row)
}

// copied is what is said of the copies of each batch, in ms; of several processes after their rank.
func copied(t *testing.T, run *detecttest.Run) string {
	t.Helper()
	run.Seal()
	opened := run.Open(t)
	r, err := analyze.Run(opened, nil, timeline.Source)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	if err := stages.Each(opened, r.Timeline, stages.NewClock(opened, r.Timeline), func(b *stages.Batch) error {
		text := fmt.Sprintf("%d:", b.Number)
		if b.Process.Rank > 0 {
			text = fmt.Sprintf("rank %d %s", b.Process.Rank, text)
		}
		if h := b.Stages[stages.H2D]; h.Known() {
			text += fmt.Sprintf(" %d-%d", h.Begin/ms, h.End/ms)
		}
		if c := b.Copied; c.Copies > 0 {
			text += fmt.Sprintf(" %d of %d MiB in %g", c.Copies, c.Bytes>>20, float64(b.Took(stages.H2D))/ms)
		}
		if b.Awaited {
			text += " awaited"
		}
		all = append(all, text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "; ")
}

func TestCopied(t *testing.T) {
	for name, c := range map[string]struct {
		play func(run *detecttest.Run)
		want string
	}{
		"one a step": {func(run *detecttest.Run) {
			c := copies(run, 0)
			for i := range int64(3) {
				c.next(10+10*i, uint32(i), "ok")
				c.copy(12+10*i, nil)
			}
			c.next(40, 3, "stop")
		}, "0: 12-14 1 of 1 MiB in 2; 1: 22-24 1 of 1 MiB in 2; 2: 32-34 1 of 1 MiB in 2 awaited"},
		"the wait right after, and none that comes later or is no wait": {func(run *detecttest.Run) {
			c := copies(run, 0)
			c.next(10, 0, "ok")
			c.copy(12, func(r *traces.Copy) { r.Next, r.GapNS, r.NextNS = "stream-sync", 20_000, 3*ms-20_000 })
			c.next(30, 1, "ok")
			c.copy(32, func(r *traces.Copy) { r.Next, r.GapNS, r.NextNS = "stream-sync", 20_001, 3*ms })
			c.next(50, 2, "ok")
			c.copy(52, func(r *traces.Copy) { r.Next, r.GapNS, r.NextNS = "", -1, 3*ms })
			c.next(70, 3, "stop")
		}, "0: 12-17 1 of 1 MiB in 4.98; 1: 32-34 1 of 1 MiB in 2; 2: 52-54 1 of 1 MiB in 2 awaited"},
		"between two copies the time is another's": {func(run *detecttest.Run) {
			c := copies(run, 0)
			c.next(10, 0, "ok")
			c.copy(11, nil)
			c.copy(25, nil)
			c.next(30, 1, "ok")
			c.copy(31, nil)
			c.next(40, 2, "stop")
		}, "0: 11-27 2 of 2 MiB in 4; 1: 31-33 1 of 1 MiB in 2 awaited"},
		"not of the step: before it, in next(), another thread, back to the host, captured, failed": {func(run *detecttest.Run) {
			c := copies(run, 0)
			c.copy(2, nil)
			c.next(10, 0, "ok")
			c.copy(12, func(r *traces.Copy) { r.Main = false })
			c.copy(13, func(r *traces.Copy) { r.Direction = "to-host" })
			c.copy(14, func(r *traces.Copy) { r.Capturing = true })
			c.copy(15, func(r *traces.Copy) { r.Result = 2 })
			c.copy(29, func(r *traces.Copy) { r.CallNS = ms / 2 })
			c.next(30, 1, "ok")
			c.copy(32, nil)
			c.next(40, 2, "stop")
		}, "0:; 1: 32-34 1 of 1 MiB in 2 awaited"},
		"a step without an end has none": {func(run *detecttest.Run) {
			c := copies(run, 0)
			c.next(10, 0, "ok")
			c.copy(12, nil)
		}, "0:"},
		"no copies at all": {func(run *detecttest.Run) {
			c := copies(run, 0)
			c.next(10, 0, "ok")
			c.next(20, 1, "stop")
		}, "0:"},
		"times that no call has": {func(run *detecttest.Run) {
			c := copies(run, 0)
			c.next(10, 0, "ok")
			c.copy(12, func(r *traces.Copy) { r.Bytes, r.CallNS = math.MinInt64, math.MinInt64 })
			c.copy(13, func(r *traces.Copy) { r.CallNS, r.GapNS, r.NextNS = math.MaxInt64, 5, math.MaxInt64 })
			c.next(40, 1, "stop")
			c.copy(41, nil)
		}, "0: 12-13 2 of 1 MiB in 0"},
	} {
		t.Run(name, func(t *testing.T) {
			run := detecttest.NewRun(t)
			c.play(run)
			if got := copied(t, run); got != c.want {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A copy's row is written when its thread makes its next call: those of other processes go before it, and so do the
// deliveries that are read side by side with them.
func TestCopiedLate(t *testing.T) {
	run := detecttest.NewRun(t)
	one, other := copies(run, 0), copies(run, 1)
	for i := range int64(3) {
		one.next(10+10*i, uint32(i), "ok")
	}
	one.next(40, 3, "stop")
	other.next(10, 0, "ok")
	for i := range int64(4) {
		other.copy(11+7*i, nil)
	}
	other.next(44, 1, "stop")
	for i := range int64(3) {
		one.copy(12+10*i, nil)
	}
	want := "0: 12-14 1 of 1 MiB in 2; 1: 22-24 1 of 1 MiB in 2; 2: 32-34 1 of 1 MiB in 2 awaited; rank 1 0: 11-34 4 of 4 MiB in 8 awaited"
	if got := copied(t, run); got != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
}

// However many copies a step has, and however long none comes, what is kept is bounded, and nothing is lost but what comes
// later than hundreds of batches.
func TestCopiedMany(t *testing.T) {
	const n = 50_000
	run := detecttest.NewRun(t)
	c := copies(run, 0)
	c.next(10, 0, "ok")
	for i := range int64(n) {
		c.copy(11+i, func(r *traces.Copy) { r.CallNS = ms / 2 })
	}
	c.next(20+n, 1, "ok") // and no copies from here on
	for i := range int64(1000) {
		c.next(30+n+10*i, 2+uint32(i), "ok")
	}
	c.next(30+n+10_000, 1002, "stop")
	got := copied(t, run)
	if want := fmt.Sprintf("0: 11-%d %d of %d MiB in %d awaited; 1: awaited; ", 10+n, n, n, n/2); !strings.HasPrefix(got, want) {
		t.Errorf("\ngot  %.200s\nwant %s", got, want)
	}
	if batches := strings.Count(got, ";") + 1; batches != 1002 {
		t.Errorf("%d batches", batches)
	}
}

package epochstartcost_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/epochstartcost"
)

const (
	ms  = int64(1e6)
	sec = int64(1e9)
)

// machine plays loaders on a machine with eight processors, of which other programs
// use some.
func machine(others float64, all ...Timed) func(*Run) {
	return func(r *Run) {
		r.Accelerators("none")
		p := r.Process(-1, 0)
		for _, t := range all {
			p.Time(t)
		}
		r.Processors(8, 0, 8, others, 0)
		r.Seal()
	}
}

// starting is workers that take two seconds to start in each of six epochs.
func starting() Timed {
	return Timed{Workers: 4, Batches: 100, Passes: 6, Fetch: EvenFetch(20 * ms), Step: Even(20 * ms), CPU: 0.9,
		Start: func(int) int64 { return 2 * sec }}
}

func with(t Timed, change func(*Timed)) Timed {
	change(&t)
	return t
}

// firstFetch takes so long in each worker that was started for the pass.
func firstFetch(ns int64) func(int, int, int) int64 {
	return func(_, batch, worker int) int64 {
		if batch == worker {
			return ns
		}
		return 20 * ms
	}
}

var cases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	{"imports in each epoch", machine(0, starting()), "proven", []string{"a pause of 2.0 s", "10 s in 5 passes", "persistent_workers=True"}},
	{"a large file opened by the first fetch", machine(0, with(starting(), func(t *Timed) { t.Start, t.Fetch = nil, firstFetch(2*sec) })), "proven", []string{"pause of 1.9 s"}},
	{"half of it each", machine(0, with(starting(), func(t *Timed) {
		t.Start, t.Fetch = func(int) int64 { return sec }, firstFetch(sec)
	})), "proven", []string{"1.0 s from iter()"}},
	{"a loader made anew for each epoch", machine(0, with(starting(), func(t *Timed) { t.Iterable = true })), "proven", nil},
	{"an evaluation's workers", machine(0, with(starting(), func(t *Timed) { t.Eval = true })), "proven", nil},
	{"a slow rank", func(r *Run) {
		r.Accelerators("none")
		for rank := range 2 {
			p := r.Process(rank, 2)
			p.Group("ddp", 0, 1)
			p.Time(with(starting(), func(t *Timed) {
				if rank == 0 {
					t.Start = nil
				}
			}))
		}
		r.Processors(8, 0, 8, 0, 0)
		r.Seal()
	}, "proven", nil},

	{"persistent workers", machine(0, with(starting(), func(t *Timed) {
		t.Persistent, t.Start = true, func(p int) int64 { return 2 * sec * int64(1-min(p, 1)) }
	})), "clean", nil},
	{"the first pass only", machine(0, with(starting(), func(t *Timed) { t.Start = func(p int) int64 { return 30 * sec * int64(1-min(p, 1)) } })), "clean", nil},
	{"fork, at once", machine(0, with(starting(), func(t *Timed) { t.Start = func(int) int64 { return 60 * ms } })), "clean", []string{"starting workers took 0.3 s"}},
	{"long epochs", machine(0, with(starting(), func(t *Timed) { t.Step = Even(500 * ms) })), "clean", nil},
	{"every fetch is long", machine(0, with(starting(), func(t *Timed) { t.Start, t.Fetch = nil, EvenFetch(2*sec) })), "clean", nil},
	{"one epoch of six was slow to start", machine(0, with(starting(), func(t *Timed) {
		t.Start = func(p int) int64 {
			if p == 3 {
				return 40 * sec
			}
			return 50 * ms
		}
	})), "clean", nil},
	{"no workers", machine(0, with(starting(), func(t *Timed) { t.Workers, t.Start = 0, nil })), "not-applicable", []string{"no workers"}},
	{"two epochs", machine(0, with(starting(), func(t *Timed) { t.Passes = 2 })), "cannot-tell", []string{"fewer than three passes"}},
	{"other programs take the processors", machine(7, with(starting(), func(t *Timed) {
		t.CPU, t.Delay, t.Step, t.Passes, t.Start = 0.2, 0.9, Even(5*ms), 10, func(int) int64 { return 600 * ms }
	})), "likely", []string{"other programs"}},
	{"an older trace", machine(0, with(starting(), func(t *Timed) { t.Older = true })), "likely", nil},
	{"cut", func(r *Run) { r.Process(-1, 0).Time(with(starting(), func(t *Timed) { t.Start = nil })) }, "cannot-tell", []string{"cut"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, epochstartcost.Rule.ID, c.want, c.says)
		})
	}
}

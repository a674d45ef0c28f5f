package cpuoversubscribed_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/cpuoversubscribed"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
)

const ms = int64(1e6)

// machine is so many processors that the run may use, by its affinity or (thousandths)
// a quota that is used up in a share of its periods, of a machine where other programs
// take some.
type machine struct {
	allowed, online int32
	quota           int64
	stopped, others float64
}

func (m machine) with(t Timed) func(*Run) {
	return func(r *Run) {
		r.Accelerators("none")
		r.Process(-1, 0).Time(t)
		r.Processors(m.allowed, m.quota, m.online, m.others, m.stopped)
		r.Seal()
	}
}

// crowded is eight workers that compute on two processors, and a loop that waits for
// them as well.
func crowded() Timed {
	return Timed{Workers: 8, Batches: 200, Passes: 2, Fetch: EvenFetch(400 * ms), Step: Even(50 * ms), CPU: 0.2, Delay: 0.75, MainCPU: 0.4, MainWait: 0.4}
}

func but(change func(*Timed)) Timed {
	t := crowded()
	change(&t)
	return t
}

var (
	two   = machine{allowed: 2, online: 2}
	eight = machine{allowed: 8, online: 8}
)

var cases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	{"eight workers on two processors", two.with(crowded()), "proven", []string{"its workers and threads share 2", "8 workers used 1.5 processors", "num_workers=1"}},
	{"a quota of two of 64", machine{allowed: 64, online: 64, quota: 2000, stopped: 0.6}.with(crowded()), "proven", []string{"quota of 2 processors", "60 % of its periods"}},
	{"a quota, on a busy machine", machine{allowed: 64, online: 64, quota: 2000, stopped: 0.6, others: 60}.with(crowded()), "proven", []string{"/job"}},
	{"bound to two of 64", machine{allowed: 2, online: 64}.with(crowded()), "proven", nil},
	{"threads of the loop's own", two.with(but(func(t *Timed) { t.Workers, t.MainCPU, t.Fetch, t.CPU, t.MainWait = 0, 2.2, EvenFetch(5*ms), 1, 0.3 })), "proven", nil},
	{"half a processor", machine{allowed: 4, online: 4, quota: 500, stopped: 0.9}.with(but(func(t *Timed) { t.CPU = 0.05 })), "proven", []string{"quota of 0.5"}},

	{"eight workers on eight", eight.with(but(func(t *Timed) { t.CPU, t.Delay, t.MainWait = 0.95, 0.02, 0.01 })), "clean", nil},
	{"eight workers that sleep on two", two.with(but(func(t *Timed) { t.CPU, t.Delay, t.MainWait = 0.01, 0.01, 0.01 })), "clean", nil},
	{"workers wait, the loop does not", two.with(but(func(t *Timed) { t.MainWait = 0.03 })), "clean", nil},
	{"a quota that is hardly used up", machine{allowed: 64, online: 64, quota: 8000, stopped: 0.05}.with(but(func(t *Timed) { t.MainWait = 0.02 })), "clean", nil},
	{"other programs take the processors", machine{allowed: 8, online: 8, others: 7}.with(but(func(t *Timed) { t.CPU = 0.1 })), "cannot-tell", []string{"other programs took them"}},
	{"both", machine{allowed: 4, online: 4, others: 1.5}.with(but(func(t *Timed) { t.CPU = 0.5 })), "likely", []string{"other programs"}},
	{"an evaluation", two.with(but(func(t *Timed) { t.Eval = true })), "not-applicable", nil},
	{"a short loop", two.with(but(func(t *Timed) { t.Batches = 50 })), "cannot-tell", []string{"too short"}},
	{"an older trace", two.with(but(func(t *Timed) { t.Older = true })), "cannot-tell", []string{"not in the trace"}},
	{"cut", func(r *Run) { r.Process(-1, 0).Time(but(func(t *Timed) { t.MainWait = 0 })) }, "cannot-tell", nil},
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
			Verdict(t, r.Findings, r.Checks, cpuoversubscribed.Rule.ID, c.want, c.says)
		})
	}
}

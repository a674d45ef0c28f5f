package loaderbottleneck_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/loaderbottleneck"
)

const (
	ms  = int64(1e6)
	sec = int64(1e9)
)

// machine plays a loader on a machine with eight processors that nobody else uses,
// without accelerators.
func machine(all ...Timed) func(*Run) {
	return func(r *Run) {
		r.Accelerators("none")
		p := r.Process(-1, 0)
		for _, t := range all {
			p.Time(t)
		}
		r.Processors(8, 0, 8, 0, 0)
		r.Seal()
	}
}

// on another kind of machine.
func on(accelerators string, others float64, t Timed) func(*Run) {
	return func(r *Run) {
		r.Accelerators(accelerators)
		r.Process(-1, 0).Time(t)
		r.Processors(8, 0, 8, others, 0)
		r.Seal()
	}
}

// slow is the plain bug: a fetch that computes for 100 ms, two workers, a step of 10 ms.
func slow() Timed {
	return Timed{Workers: 2, Batches: 200, Passes: 2, Fetch: EvenFetch(100 * ms), Collate: Even(ms), Queue: Even(ms), Step: Even(10 * ms), CPU: 0.95, MainCPU: 0.5}
}

func with(t Timed, change func(*Timed)) Timed {
	change(&t)
	return t
}

// once is a time that one batch takes, and all others another.
func once(pass, batch int, long, usual int64) func(int, int) int64 {
	return func(p, b int) int64 {
		if p == pass && b == batch {
			return long
		}
		return usual
	}
}

var cases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	// The bug, and the bug in disguise.
	{"decoding in two workers", machine(slow()), "proven", []string{"for the fetch (dataset and transforms)", "num_workers=8", "2 workers", "if data were free 10 ms"}},
	{"decoding in the training process", machine(with(slow(), func(t *Timed) { t.Workers, t.Fetch = 0, EvenFetch(80*ms) })), "proven",
		[]string{"the training process fetches itself", "num_workers=8"}},
	{"reading from a disk", machine(with(slow(), func(t *Timed) { t.CPU, t.Read = 0.02, 4<<20 })), "proven", []string{"fetch"}},
	{"reading from a file system of user space", machine(with(slow(), func(t *Timed) { t.CPU, t.Files = 0.02, 0.9 })), "proven",
		[]string{"reading files (90 % of its time)", "faster disk"}},
	{"reading a little, and waiting on purpose", machine(with(slow(), func(t *Timed) { t.CPU, t.Files = 0.02, 0.2 })), "likely",
		[]string{"reading files (20 % of its time)", "at a pace of its own", "not:faster disk"}},
	{"collate", machine(with(slow(), func(t *Timed) { t.Fetch, t.Collate = EvenFetch(5*ms), Even(95*ms) })), "proven", []string{"for the collate"}},
	{"a slow sampler", machine(with(slow(), func(t *Timed) { t.Fetch, t.Sampler, t.CPU = EvenFetch(5*ms), Even(60*ms), 0.9 })), "proven",
		[]string{"for the sampler and index queue", "more workers give next to nothing"}},
	{"batches that take long to pickle", machine(with(slow(), func(t *Timed) { t.Fetch, t.Queue, t.Ahead = EvenFetch(5*ms), Even(150*ms), 1 })), "proven",
		[]string{"for the result queue"}},
	{"one slow worker", machine(with(slow(), func(t *Timed) {
		t.Workers = 4
		t.Fetch = func(_, _, worker int) int64 {
			if worker == 2 {
				return 300 * ms
			}
			return 20 * ms
		}
	})), "proven", []string{"Worker 2 takes 301 ms for a batch, the others 21 ms"}},
	{"one slow rank", func(r *Run) {
		r.Accelerators("none")
		for rank := range 2 {
			p := r.Process(rank, 2)
			p.Group("ddp", 0, 1)
			t := slow()
			if rank == 0 { // it waits for the other one in its steps
				t.Fetch, t.Step = EvenFetch(2*ms), Even(50*ms)
			}
			p.Time(t)
		}
		r.Processors(8, 0, 8, 0, 0)
		r.Seal()
	}, "proven", []string{"on rank 1", "Rank 1 takes 101 ms"}},
	{"a long pause in the loop hides it", machine(with(slow(), func(t *Timed) { t.Step = once(1, 50, 400*sec, 10*ms) })), "cannot-tell",
		[]string{"without a few long pauses of its own"}},
	{"a GPU, and workers that are never idle", on("nvidia", 0, slow()), "proven", []string{"at least (what an accelerator does meanwhile is not counted)"}},
	{"a stream that decodes", machine(with(slow(), func(t *Timed) { t.Iterable = true })), "proven", nil},
	{"one pass", machine(with(slow(), func(t *Timed) { t.Passes = 1; t.Batches = 400 })), "proven", nil},
	{"persistent workers", machine(with(slow(), func(t *Timed) { t.Persistent = true })), "proven", nil},
	{"more workers than processors: no more would help", func(r *Run) {
		r.Accelerators("none")
		r.Process(-1, 0).Time(with(slow(), func(t *Timed) { t.Delay, t.CPU = 0.05, 0.9 }))
		r.Processors(2, 0, 2, 0, 0)
		r.Seal()
	}, "proven", []string{"more workers give next to nothing", "not:num_workers="}},

	{"other programs take some of the processors", on("none", 7, with(slow(), func(t *Timed) { t.CPU, t.Delay = 0.55, 0.4 })), "proven", nil},

	// Correct programs that look like it.
	{"a step that takes long", machine(with(slow(), func(t *Timed) { t.Step = Even(150 * ms) })), "clean", []string{"not your bottleneck: "}},
	{"a GPU that is waited for in the step", on("nvidia", 0, with(slow(), func(t *Timed) { t.Step = Even(120 * ms) })), "clean", []string{"not your bottleneck"}},
	{"an evaluation", machine(with(slow(), func(t *Timed) { t.Eval = true }), with(slow(), func(t *Timed) { t.Step = Even(90 * ms) })), "note",
		[]string{"for the fetch"}},
	{"a short evaluation", machine(with(slow(), func(t *Timed) { t.Eval, t.Batches = true, 40 }), with(slow(), func(t *Timed) { t.Step = Even(900 * ms) })),
		"not-applicable", []string{"an evaluation"}},
	{"the loop waits on purpose for a simulator", machine(with(slow(), func(t *Timed) { t.CPU = 0.01 })), "likely", []string{"at a pace of its own"}},
	{"a live stream", machine(with(slow(), func(t *Timed) { t.CPU, t.Iterable, t.Workers = 0.01, true, 1 })), "likely", []string{"a live source"}},
	{"the first pass fills a cache", machine(with(slow(), func(t *Timed) {
		t.Passes = 4
		t.Fetch = func(pass, _, _ int) int64 {
			if pass == 0 {
				return 400 * ms
			}
			return 5 * ms
		}
	})), "note", []string{"only the first pass waits"}},
	{"SIGSTOP for a minute while it waited", machine(with(slow(), func(t *Timed) {
		t.Step = Even(120 * ms)
		t.Fetch = func(pass, batch, _ int) int64 {
			if pass == 0 && batch == 70 {
				return 60 * sec
			}
			return 20 * ms
		}
	})), "clean", []string{"without the longest"}},
	{"a debugger in the dataset, three times", machine(with(slow(), func(t *Timed) {
		t.Step = Even(120 * ms)
		t.Fetch = func(_, batch, _ int) int64 {
			if batch%70 == 60 {
				return 30 * sec
			}
			return 20 * ms
		}
	})), "clean", nil},
	{"a checkpoint after each hundred batches", machine(with(slow(), func(t *Timed) {
		t.Fetch = EvenFetch(10 * ms)
		t.Step = func(_, batch int) int64 {
			if batch%100 == 99 {
				return 9 * sec
			}
			return 50 * ms
		}
	})), "clean", []string{"not your bottleneck"}},
	{"prefetched by a thread, iter() in it", machine(with(slow(), func(t *Timed) { t.Aside, t.Workers = "iter", 0 })), "cannot-tell", []string{"another thread"}},
	{"prefetched by a thread, iter() in the main one", machine(with(slow(), func(t *Timed) { t.Aside, t.Workers = "next", 0 })), "cannot-tell", []string{"another thread"}},
	{"a GPU that computes meanwhile", on("nvidia", 0, with(slow(), func(t *Timed) { t.Workers = 0 })), "likely", []string{"an accelerator was still at work"}},
	{"a GPU, and workers that idle", on("nvidia", 0, with(slow(), func(t *Timed) { t.Fetch, t.Queue, t.Ahead = EvenFetch(20*ms), Even(60*ms), 1 })), "likely",
		[]string{"an accelerator"}},
	{"other programs take the processors", on("none", 7, with(slow(), func(t *Timed) { t.CPU, t.Delay, t.Step = 0.3, 0.6, Even(30*ms) })), "likely", []string{"other programs"}},
	{"workers that would keep up, if others had not the processors", on("none", 6, with(slow(), func(t *Timed) {
		t.Workers, t.CPU, t.Delay, t.Step = 1, 0.21, 0.75, Even(30*ms)
	})), "likely", []string{"other programs"}},
	{"a limit on purpose, in pieces, each of which waits for a processor", on("none", 6, with(slow(), func(t *Timed) { t.CPU, t.Delay = 0.01, 0.8 })),
		"likely", []string{"at a pace of its own"}},
	{"no optimizer", machine(with(slow(), func(t *Timed) { t.NoStep = true })), "likely", nil},
	{"a short run", machine(with(slow(), func(t *Timed) { t.Batches = 40 })), "cannot-tell", []string{"too short"}},
	{"one batch", machine(with(slow(), func(t *Timed) { t.Batches, t.Passes = 1, 3 })), "cannot-tell", nil},
	{"an older trace", machine(with(slow(), func(t *Timed) { t.Older = true })), "likely", nil},
	{"batches in any order", machine(with(slow(), func(t *Timed) { t.Disordered = true })), "proven", []string{"batches are delivered in any order"}},
	{"cut", func(r *Run) { r.Process(-1, 0).Time(with(slow(), func(t *Timed) { t.Step = Even(200 * ms) })) }, "cannot-tell", []string{"cut"}},
	{"records were lost", func(r *Run) {
		r.Accelerators("none")
		r.Process(-1, 0).Time(with(slow(), func(t *Timed) { t.Step = Even(200 * ms) }))
		r.Lost("writer", "batch_next", 5)
		r.Seal()
	}, "cannot-tell", []string{"records were lost"}},
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
			Verdict(t, r.Findings, r.Checks, loaderbottleneck.Rule.ID, c.want, c.says)
		})
	}
}

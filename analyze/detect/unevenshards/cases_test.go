package unevenshards_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/unevenshards"
	"github.com/dptrace/dptrace/traces"
)

// rank is what one rank does.
type rank struct {
	passes []pass
	raised string // what ends it in its last pass
	end    string // the row of torch.distributed for that: class; then calls and before
	calls  uint32
	before uint32
	code   int32  // it ends with this code, or by this signal (negative), as the kernel says
	kind   string // of exception; "" RuntimeError
	meets  bool
}

// pass is a pass of one rank: its batches, the optimizer steps in it, and its
// end ("": the rank does not leave it).
type pass struct {
	batches, steps int
	end            string
	eval           bool
}

func whole(n int) pass      { return pass{batches: n, steps: n, end: "exhausted"} }
func broken(n int) pass     { return pass{batches: n, steps: n, end: "dropped"} }
func stuck(n int) pass      { return pass{batches: n, steps: n - 1} }
func evaluated(n int) pass  { return pass{batches: n, end: "exhausted", eval: true} }
func passes(p ...pass) rank { return rank{passes: p} }

// fails is a rank that ends with an exception.
func fails(message string, p ...pass) rank { return rank{passes: p, raised: message} }

const gone = "[/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:14236"

type played struct {
	ranks []rank
	op    string // of the group; "": none is seen
	joins bool   // each enters a join context
	apart bool   // each rank has a group of its own
	code  string // of the command; "": cut
	lost  bool
}

func (p played) play(r *Run) {
	var mains []*Process
	for n := range p.ranks {
		main := r.Process(n, len(p.ranks))
		mains = append(mains, main)
		switch {
		case p.apart:
			main.Group(p.op, int64(n), int64(n+100))
		case p.op != "":
			main.Group(p.op)
		}
		if p.joins {
			r.Add(main.Proc, traces.Dist{Op: "join"})
		}
		r.Add(main.Proc, traces.Loader{Loader: 1, Length: -1, BatchSize: 8, DatasetClass: "__main__.Files", Iterable: true, File: "/home/me/proj/train.py", Line: 88})
	}
	for n, rank := range p.ranks {
		proc := mains[n].Proc
		var steps uint64
		for i, pass := range rank.passes {
			next := func(batch int, status string) {
				r.Add(proc, traces.BatchNext{Loader: 1, Pass: uint32(i), Batch: uint32(batch), Worker: -1, Status: status, Steps: steps, Optimizer: 1, Grad: !pass.eval})
			}
			r.Add(proc, traces.Pass{Loader: 1, Pass: uint32(i), Phase: "begin"})
			for b := range pass.batches {
				next(b, "ok")
				if b < pass.steps {
					steps++
				}
			}
			if pass.end == "exhausted" {
				next(-1, "stop")
			}
			if pass.end != "" {
				r.Add(proc, traces.Pass{Loader: 1, Pass: uint32(i), Phase: "end", End: pass.end, Delivered: uint32(pass.batches)})
			}
		}
		if rank.meets {
			r.Add(proc, traces.Dist{Op: "meet", Class: "all_reduce", Ranks: []int64{0, 1}})
		}
		if rank.raised != "" {
			kind := "RuntimeError"
			if rank.kind != "" {
				kind = rank.kind
			}
			r.Add(proc, traces.Exception{Worker: -1, Stage: "exit", Type: kind, Message: rank.raised})
			if rank.end != "" || rank.calls > 0 {
				r.Add(proc, traces.Dist{Op: "end", Class: rank.end, Calls: rank.calls, Before: rank.before})
			}
		}
		if e := (traces.Exit{ExitCode: rank.code, Source: "kernel"}); rank.code != 0 {
			if rank.code < 0 {
				e.ExitCode, e.Signal = -1, -rank.code
			}
			r.Add(proc, e)
		}
	}
	for _, main := range mains { // all lived to the end
		r.Add(main.Proc, traces.Memory{Rss: 1})
	}
	if p.lost {
		r.Lost("hook", "batch_next", 3)
	}
	if p.code != "" {
		r.End(p.code)
	}
}

// cases: want is the certainty or the status, and words that must be in what is
// said; those behind "not:" must not.
var cases = []struct {
	name string
	play played
	want string
	says []string
}{
	{"the command fails", played{ranks: []rank{passes(stuck(8)), passes(whole(7))}, op: "ddp", code: "1"}, "proven",
		[]string{"Rank 1 is out of data after 7 batches of pass 0, rank 0 is left alone", "rank 0 8 (was still in the pass)", "rank 1 7 (to the end of its data)", "exit code 1", "islice"}},
	{"its exception", played{ranks: []rank{passes(whole(7)), fails(gone, stuck(8))}, op: "fsdp", code: "0"}, "proven", []string{"Rank 0 is out of data", "Connection closed by peer"}},
	{"three ranks, two of them short", played{ranks: []rank{passes(whole(7)), fails(gone, stuck(8)), passes(whole(7))}, op: "ddp", code: "1"}, "proven", []string{"Ranks 0 and 2 are out of data", "Rank 0 began no other pass"}},
	{"it shows only in the last epoch", played{ranks: []rank{fails(gone, whole(12), whole(12), pass{batches: 1}), passes(whole(8), whole(8), whole(8))}, op: "ddp", code: "1"},
		"proven", []string{"after 8 batches of pass 0", "rank 0 12 (to the end"}},
	{"evaluates when the other is gone", played{ranks: []rank{fails(gone, stuck(8)), passes(whole(7), evaluated(3))}, op: "ddp", code: "1"}, "proven", nil},

	{"no group was seen", played{ranks: []rank{passes(stuck(8)), passes(whole(7))}, code: "1"}, "likely", []string{"It was not seen"}},
	{"another error", played{ranks: []rank{fails("CUDA out of memory", stuck(8)), passes(whole(7))}, op: "ddp", code: "1"}, "likely", nil},
	{"records were lost", played{ranks: []rank{passes(stuck(8)), passes(whole(7))}, op: "ddp", code: "1", lost: true}, "likely", nil},

	{"a meeting of each step fails", played{ranks: []rank{{passes: []pass{stuck(8)}, raised: gone, end: "monitored_barrier", before: 7}, passes(whole(7))}, op: "ddp", code: "1"}, "proven", nil},
	{"a meeting fails that is none of each step", played{ranks: []rank{{passes: []pass{stuck(8)}, raised: gone, end: "barrier", before: 1}, passes(whole(7))}, op: "ddp", code: "1"}, "likely", []string{"agree on when to end"}},
	{"the ranks have met after the last batch, then one fails", played{ranks: []rank{{passes: []pass{stuck(8)}, raised: gone, calls: 1}, passes(whole(7))}, op: "ddp", code: "1"}, "likely", []string{"agree on when to end"}},
	{"the ranks have met after the last batch, and fail at another meeting", played{ranks: []rank{{passes: []pass{stuck(8)}, raised: gone, end: "barrier", calls: 1}, passes(whole(7))}, op: "ddp", code: "1"}, "cannot-tell", []string{"the ranks had met after the last batch", "barrier failed"}},
	{"ranks that meet in each step, one is ended by its launcher", played{ranks: []rank{{passes: []pass{stuck(8)}, meets: true, code: -15}, passes(whole(7))}, op: "ddp", code: "1"}, "likely", []string{"agree on when to end"}},
	{"one is ended by its launcher", played{ranks: []rank{{passes: []pass{stuck(8)}, code: -15}, passes(whole(7))}, op: "ddp", code: "1"}, "proven", nil},
	{"the shorter one ends with a code of its own", played{ranks: []rank{fails(gone, stuck(8)), {passes: []pass{whole(7)}, code: 1}}, op: "ddp", code: "1"}, "likely", []string{"failed by itself"}},
	{"the shorter one waits, and gets the backend's error too", played{ranks: []rank{fails(gone, stuck(8)), {passes: []pass{whole(7)}, raised: gone, code: 1}}, op: "ddp", code: "1"}, "proven", nil},
	{"the shorter one fails by itself", played{ranks: []rank{fails(gone, stuck(8)), {passes: []pass{whole(7)}, raised: "No space left on device", kind: "OSError"}}, op: "ddp", code: "1"}, "cannot-tell", []string{"rank 1 failed by itself", "No space left"}},
	{"the shorter one fails by itself, of a connection", played{ranks: []rank{fails(gone, stuck(8)), {passes: []pass{whole(7)}, raised: "[Errno 110] Connection timed out", kind: "TimeoutError"}}, op: "ddp", code: "1"}, "cannot-tell", []string{"rank 1 failed by itself"}},
	{"the shorter one is killed", played{ranks: []rank{fails(gone, stuck(8)), {passes: []pass{whole(7)}, code: -11}}, op: "ddp", code: "1"}, "cannot-tell", []string{"SIGSEGV"}},
	{"the longer one fails by itself", played{ranks: []rank{{passes: []pass{stuck(8)}, raised: "cannot read row 61", kind: "ValueError"}, passes(whole(7))}, op: "ddp", code: "1"}, "cannot-tell", []string{"rank 0 failed by itself"}},

	{"even", played{ranks: []rank{passes(whole(8), whole(8)), passes(whole(8), whole(8))}, op: "ddp", code: "0"}, "clean", []string{"2 ranks, as many batches on each in 2 passes"}},
	{"even, and fails", played{ranks: []rank{fails(gone, stuck(8)), passes(stuck(8))}, op: "ddp", code: "1"}, "clean", nil},

	{"join context", played{ranks: []rank{passes(whole(12)), passes(whole(7))}, op: "ddp", code: "0"}, "cannot-tell", []string{"join context"}},
	{"join context, and fails later", played{ranks: []rank{fails(gone, broken(12)), passes(whole(7))}, op: "ddp", code: "1"}, "cannot-tell", []string{"stepped on alone"}},
	{"join context, entered for another part", played{ranks: []rank{passes(stuck(8)), passes(whole(7))}, op: "ddp", code: "1", joins: true}, "cannot-tell", []string{"a join context was entered"}},
	{"training by steps", played{ranks: []rank{passes(whole(12), broken(8)), passes(whole(7), whole(7), broken(6))}, op: "ddp", code: "0"}, "cannot-tell", []string{"counts steps"}},
	{"training by steps, killed", played{ranks: []rank{fails(gone, whole(12), stuck(8)), fails(gone, whole(7), whole(7), stuck(6))}, op: "ddp", code: "1"}, "cannot-tell", []string{"counts steps"}},
	{"the ranks agree on the end", played{ranks: []rank{passes(pass{8, 7, "dropped", false}), passes(whole(7))}, op: "ddp", code: "0"}, "cannot-tell", []string{"agree on when to end"}},
	{"they agree on it, and go on", played{ranks: []rank{fails(gone, pass{8, 7, "dropped", false}, evaluated(3)), passes(whole(7), evaluated(3))}, op: "ddp", code: "1"}, "cannot-tell", []string{"went on"}},
	{"remainder of accumulated gradients", played{ranks: []rank{passes(pass{13, 3, "exhausted", false}), passes(pass{12, 3, "exhausted", false})}, op: "ddp", code: "0"}, "cannot-tell", nil},
	{"pipeline stages", played{ranks: []rank{passes(stuck(8)), passes(whole(7))}, op: "ddp", apart: true, code: "1"}, "cannot-tell", nil},
	{"one rank", played{ranks: []rank{passes(whole(8))}, op: "ddp", code: "0"}, "not-applicable", []string{"one rank"}},
	{"cut", played{ranks: []rank{passes(whole(8)), passes(whole(8))}, op: "ddp"}, "cannot-tell", []string{"cut"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, unevenshards.Rule.ID, c.want, c.says)
		})
	}
}

package workerkilled_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/workerkilled"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

const second = int64(1e9)

// scene is a main process (number 1, pid 100) whose loader has two workers
// (numbers 2 and 3, pids 101 and 102). Four batches were delivered, batches 4
// to 7 are given to the workers, 0 to 4 were handed over by them.
type scene struct {
	*detecttest.Run
	begin int64
}

func newScene(t *testing.T, tier string, how traces.Loader) *scene {
	s := &scene{Run: detecttest.NewRun(t)}
	s.begin = s.Now()
	if tier != "" {
		s.Meta("tier", tier)
	}
	s.Add(1, traces.Process{Pid: 100, Ppid: 99, Kind: "target", Hook: "on", Cmdline: "python3 train.py", Exe: "/usr/bin/python3", Cwd: "/home/me", Torch: "2.15.0", Rank: -1, LocalRank: -1})
	how.Loader, how.NumWorkers, how.Prefetch, how.BatchSize, how.Length, how.File, how.Line = 1, 2, 2, 2, 100, "/home/me/train.py", 8
	s.Add(1, how, traces.Pass{Loader: 1, Phase: "begin"})
	for i := range int32(2) {
		s.Add(uint32(2+i), traces.Process{Pid: 101 + i, Ppid: 100, Kind: "worker", Hook: "on", Cmdline: "python3 train.py", Exe: "/usr/bin/python3", Cwd: "/home/me", Torch: "2.15.0", Rank: -1, LocalRank: -1})
		s.Add(1, traces.Worker{Loader: 1, Worker: i, Pid: 101 + i, Phase: "begin"})
		s.Add(uint32(2+i), traces.Worker{Worker: i, Pid: 101 + i, Phase: "ready"})
	}
	for b := range uint32(8) {
		s.Add(1, traces.BatchPut{Loader: 1, Batch: b, Worker: int32(b % 2), Indices: []int64{int64(2 * b), int64(2*b + 1)}})
	}
	for b := range uint32(5) {
		s.Add(2+b%2, traces.BatchFetch{Worker: int32(b % 2), Batch: b, Fetch: b / 2, Samples: 2})
	}
	for b := range uint32(4) {
		s.Add(1, traces.BatchNext{Loader: 1, Batch: b, Worker: -2, Status: "ok", CallNS: s.Now(), Grad: true})
	}
	s.Wait(second)
	return s
}

// asked is the rows of an ordinary end: the loop has all batches.
func (s *scene) asked() {
	call := s.Now()
	s.Wait(second / 10)
	for i := range int32(2) {
		s.Add(1, traces.Worker{Loader: 1, Worker: i, Pid: 101 + i, Phase: "exit", Asked: "yes"})
		s.Add(uint32(2+i), traces.Exit{Source: "exitcode"})
	}
	s.Add(1, traces.BatchNext{Loader: 1, Batch: 4, Worker: -2, Status: "stop", CallNS: call}, traces.Pass{Loader: 1, Phase: "end", End: "exhausted", Delivered: 4})
}

// exit is a worker's exit row.
func (s *scene) exit(worker int32, code int32, asked string) {
	s.Add(1, traces.Worker{Loader: 1, Worker: worker, Pid: 101 + worker, Phase: "exit", ExitCode: code, Asked: asked})
	e := traces.Exit{ExitCode: code, Source: "exitcode"}
	if code < 0 {
		e.ExitCode, e.Signal = -1, -code
	}
	s.Add(uint32(2+worker), e)
}

// again is another pass, without an end that anybody saw.
func (s *scene) again() {
	s.Wait(second)
	s.Add(1, traces.Pass{Loader: 1, Pass: 1, Phase: "begin"})
	s.Add(1, traces.BatchNext{Loader: 1, Pass: 1, Worker: -2, Status: "ok", CallNS: s.Now(), Grad: true})
	s.Add(1, traces.Pass{Loader: 1, Pass: 1, Phase: "end", End: "exhausted", Delivered: 1})
}

// kernel is the kernel's exit row.
func (s *scene) kernel(proc uint32, code, signal int32) {
	s.Add(proc, traces.Exit{ExitCode: code, Signal: signal, Source: "kernel"})
}

// complaint is torch's error in the loop.
func (s *scene) complaint(stage, message string) {
	e := traces.Exception{Loader: 1, Worker: -2, Stage: stage, Sample: -1, Type: "RuntimeError", Message: message, File: "/usr/lib/python3/torch/utils/data/_utils/signal_handling.py", Line: 66, Func: "handler"}
	if stage == "exit" {
		e.Loader, e.Worker = 0, -1
	} else {
		s.Add(1, traces.BatchNext{Loader: 1, Worker: -2, Status: "error", CallNS: s.Now() - second/10})
		s.Add(1, traces.Pass{Loader: 1, Phase: "end", End: "error", Delivered: 4})
	}
	s.Add(1, e)
}

// missed is an error in the loop that is none of torch's: it reached for a batch
// of a worker that was gone.
func (s *scene) missed(kind, file string) {
	s.Add(1, traces.BatchNext{Loader: 1, Worker: -2, Status: "error", CallNS: s.Now() - second/10})
	s.Add(1, traces.Pass{Loader: 1, Phase: "end", End: "error", Delivered: 4})
	s.Add(1, traces.Exception{Loader: 1, Worker: -2, Stage: "next", Sample: -1, Type: kind, File: file, Line: 629, Func: "SocketClient"})
}

// leaves is that the second worker calls sys.exit() in a fetch.
func (s *scene) leaves() {
	s.Add(3, traces.Exception{Worker: 1, Batch: 5, Stage: "fetch", Sample: 10, Type: "SystemExit", File: "/home/me/data.py", Line: 12,
		Func: "__getitem__"})
}

const connection = "/usr/lib/python3.11/multiprocessing/connection.py"

func (s *scene) oomKills(at int64, kills int64) {
	s.Add(0, traces.Limit{Head: traces.Head{TsNS: at}, Scope: "cgroup", Path: "/job", Limit: 2 << 30, Usage: 1 << 30, OomKills: kills},
		traces.Limit{Head: traces.Head{TsNS: at}, Scope: "host", Path: "/", Limit: 64 << 30, Usage: 4 << 30, OomKills: kills})
}

func TestDeaths(t *testing.T) {
	for _, c := range scenes {
		t.Run(c.name+", "+c.tier, func(t *testing.T) {
			method := "fork"
			if strings.HasPrefix(c.name, "forkserver") {
				method = "forkserver"
			}
			s := newScene(t, c.tier, traces.Loader{StartMethod: method})
			c.play(s)
			run := s.Open(t)
			result, err := analyze.Run(run, analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			loader, want := 1, c.want
			if rest, ok := strings.CutPrefix(want, "2 "); ok {
				loader, want = 2, rest
			}
			said := verdict(result, loader)
			words := strings.Split(want, "|")
			if !strings.HasPrefix(said, words[0]+"\n") {
				t.Fatalf("is not %s:\n%s", words[0], said)
			}
			for _, w := range words[1:] {
				if !strings.Contains(said, w) {
					t.Errorf("does not say %q:\n%s", w, said)
				}
			}
			if c.not != "" && strings.Contains(said, c.not) {
				t.Errorf("says %q:\n%s", c.not, said)
			}
			for _, f := range result.Findings {
				checkRefs(t, run, f)
			}
		})
	}
}

// verdict is what the rule says about a loader: a finding in whole, else the check.
func verdict(r *analyze.Result, loader int) string {
	for _, f := range r.Findings {
		if f.Rule == workerkilled.Rule.ID && f.Loader.ID == loader {
			text := f.Certainty.String() + "\n" + f.Title
			for _, e := range f.Evidence {
				text += "\n" + e.Text
			}
			return text + "\n" + f.Cost + "\n" + f.Fix
		}
	}
	for _, c := range r.Checks {
		if c.Rule == workerkilled.Rule.ID && c.Loader == loader {
			return string(c.Status) + "\n" + c.Reason
		}
	}
	return "nothing\n"
}

// checkRefs follows the references of a finding: each is a row that is there.
func checkRefs(t *testing.T, run *traces.Run, f finding.Finding) {
	t.Helper()
	want := map[string]bool{}
	for _, e := range f.Evidence {
		for _, r := range e.Refs {
			want[fmt.Sprint(r.Table, " ", r.Seq)] = true
		}
	}
	if len(want) == 0 {
		t.Errorf("no references: %s", f.Title)
	}
	err := run.Each(nil, func(b traces.Batch) error {
		switch rows := b.Rows.(type) {
		case []traces.Signal:
			for _, r := range rows {
				delete(want, fmt.Sprint(b.Table, " ", r.Seq))
			}
		case []traces.Exit:
			for _, r := range rows {
				delete(want, fmt.Sprint(b.Table, " ", r.Seq))
			}
		case []traces.Worker:
			for _, r := range rows {
				delete(want, fmt.Sprint(b.Table, " ", r.Seq))
			}
		case []traces.Exception:
			for _, r := range rows {
				delete(want, fmt.Sprint(b.Table, " ", r.Seq))
			}
		case []traces.BatchPut:
			for _, r := range rows {
				delete(want, fmt.Sprint(b.Table, " ", r.Seq))
			}
		case []traces.Limit:
			for _, r := range rows {
				delete(want, fmt.Sprint(b.Table, " ", r.Seq))
			}
		case []traces.Oom:
			for _, r := range rows {
				delete(want, fmt.Sprint(b.Table, " ", r.Seq))
			}
		}
		return nil
	})
	if err != nil || len(want) > 0 {
		t.Errorf("references to no rows: %v (%v)", want, err)
	}
}

// TestRanks: one finding for a loader that two ranks have.
func TestRanks(t *testing.T) {
	r := detecttest.NewRun(t)
	for rank := range 2 {
		p := r.Process(rank, 2)
		o := p.Open(detecttest.Loader{Workers: 1, Start: func(int, int) []*detecttest.Gen { return nil }})
		o.Pass(detecttest.Pass{Break: 2})
		r.Add(p.Proc, traces.Worker{Loader: 1, Pid: int32(1000 + p.Proc + 1), Phase: "exit", ExitCode: -9, Asked: "no"})
	}
	r.Seal()
	result, err := analyze.Run(r.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	if said := verdict(result, 1); !strings.Contains(said, "2 of 2 workers died") || !strings.Contains(said, "rank 1") || len(result.Timeline.Loaders) != 2 {
		t.Error(said)
	}
}

// TestPersistent: a worker that serves several passes is named with the pass in
// which it died.
func TestPersistent(t *testing.T) {
	r := detecttest.NewRun(t)
	p := r.Process(-1, 0)
	o := p.Open(detecttest.Loader{Workers: 2, Persistent: true, Start: func(int, int) []*detecttest.Gen { return nil }})
	o.Pass(detecttest.Train)
	o.Pass(detecttest.Train)
	o.Pass(detecttest.Pass{Break: 3})
	r.Add(1, traces.Worker{Loader: 1, Pass: 2, Worker: 1, Pid: 1003, Phase: "exit", ExitCode: -11, Asked: "no"})
	r.Add(1, traces.Worker{Loader: 1, Pass: 2, Worker: 0, Pid: 1002, Phase: "exit", Asked: "yes"})
	r.Seal()
	result, err := analyze.Run(r.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	if said := verdict(result, 1); !strings.Contains(said, "Worker 1 died in pass 2: SIGSEGV") {
		t.Error(said)
	}
	if wps := result.Timeline.Loaders[0].WorkerProcesses; len(wps) != 2 || len(wps[0].Workers) != 3 {
		t.Errorf("%d worker processes", len(wps))
	}
	var _ *timeline.WorkerProcess = result.Timeline.Loaders[0].WorkerProcesses[0]
}

// TestNoWorkers: without workers none can die, which is not the same as that none
// did.
func TestNoWorkers(t *testing.T) {
	r := detecttest.NewRun(t)
	r.Process(-1, 0).Open(detecttest.Loader{Start: func(int, int) []*detecttest.Gen { return nil }}).Pass(detecttest.Train)
	r.Seal()
	result, err := analyze.Run(r.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	if said := verdict(result, 1); said != "not-applicable\nno workers: the main process loads the data" {
		t.Error(said)
	}
}

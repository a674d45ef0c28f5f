package account_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/account"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

func TestLedger(t *testing.T) {
	r := NewRun(t)
	p := r.Process(-1, 0)
	head := func(proc uint32) traces.Head { return traces.Head{TsNS: 7, Proc: proc} }
	for _, row := range []any{
		traces.Lost{Head: head(p.Proc), Source: "hook", Count: 3, Reason: "its ring was full"},
		traces.Lost{Head: head(p.Proc), Source: "hook", Count: 4, Reason: "its ring was full"},
		traces.Lost{Head: head(0), Source: "writer", Table: "rng_state", Count: 1, Reason: "disk full"},
		traces.Overhead{Head: head(p.Proc), HookNS: 1_000_000},
		traces.Overhead{Head: head(p.Proc), HookNS: 3_000_000}, // so far, not since the last row
		traces.Overhead{Head: head(0), CPUNS: 7_000_000},
		traces.Memory{Head: head(p.Proc), CPUNS: 900_000_000},
		traces.Memory{Head: head(p.Proc), CPUNS: 1_000_000_000},
		traces.Memory{Head: head(0), CPUNS: 5_000_000_000}, // the recorder is not the program
	} {
		r.W.Append(row)
	}
	r.Seal()
	result, err := analyze.Run(r.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	want := []account.Loss{
		{Source: "hook", Count: 7, Reason: "its ring was full"},
		{Source: "writer", Table: "rng_state", Count: 1, Reason: "disk full"},
	}
	if diff := cmp.Diff(want, result.Lost); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	if result.Overhead.Percent != 1 {
		t.Errorf("overhead %v %%, want 1", result.Overhead.Percent)
	}
}

// TestCosts: a probe's CPU time is part of its recorder's and is counted once;
// the time in its eBPF programs comes on top.
func TestCosts(t *testing.T) {
	r := NewRun(t)
	p := r.Process(-1, 0)
	head := func(proc uint32) traces.Head { return traces.Head{TsNS: 7, Proc: proc} }
	r.Meta("target_cpu_ns", "1000000000")
	for _, row := range []any{
		traces.Overhead{Head: head(p.Proc), HookNS: 3_000_000, StartNS: 500_000},
		traces.Overhead{Head: head(0), CPUNS: 1_000_000, StartNS: 1_000_000},
		traces.Overhead{Head: head(0), CPUNS: 10_000_000, StartNS: 2_500_000}, // what ended helpers have cost is known late
		traces.Overhead{Head: head(0), Probe: "cow", CPUNS: 2_000_000, StartNS: 1_500_000, BpfNS: 5_000_000, BpfRuns: 10},
		traces.Overhead{Head: head(0), Probe: "cow", CPUNS: 4_000_000, StartNS: 1_500_000, BpfNS: 20_000_000, BpfRuns: 40},
		traces.Overhead{Head: head(0), Probe: "process", CPUNS: 1_000_000, BpfRuns: 99}, // not timed
		traces.Overhead{Head: head(0), Probe: "procfs", CPUNS: 2_000_000},
	} {
		r.W.Append(row)
	}
	r.Seal()
	result, err := analyze.Run(r.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	want := []account.Cost{
		{Name: "hook", Tier: "hook", Kind: account.CostHook, NS: 3_000_000, StartNS: 500_000, Percent: 0.3},
		{Name: "recorder", Tier: "hook", Kind: account.CostRecorder, NS: 3_000_000, StartNS: 1_000_000, Percent: 0.3},
		{Name: "cow", Tier: "kernel", Kind: account.CostRecorder, NS: 4_000_000, StartNS: 1_500_000, Percent: 0.4},
		{Name: "cow eBPF", Tier: "kernel", Kind: account.CostBPF, NS: 20_000_000, Percent: 2},
		{Name: "process", Tier: "kernel", Kind: account.CostRecorder, NS: 1_000_000, Percent: 0.1},
		{Name: "procfs", Tier: "hook", Kind: account.CostRecorder, NS: 2_000_000, Percent: 0.2},
	}
	if diff := cmp.Diff(want, result.Overhead.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if got := result.Overhead; got.Percent != 3.3 || got.Start != 0.3 || got.Untimed != 99 || !strings.Contains(got.Method, "eBPF") {
		t.Errorf("%+v, want 3.3 %%: 3 ms of the hook, 10 of the recorder, 20 of eBPF programs in 1 s; 0.3 to begin", got)
	}
}

// TestCutCosts: of a program that goes on without its recorder the hook tells its
// own CPU time to the end, and nobody the program's.
func TestCutCosts(t *testing.T) {
	r := NewRun(t)
	p := r.Process(-1, 0)
	for _, row := range []any{
		traces.Memory{Head: traces.Head{TsNS: 7, Proc: p.Proc}, CPUNS: 100_000_000},
		traces.Overhead{Head: traces.Head{TsNS: 8, Proc: p.Proc}, HookNS: 150_000_000},
	} {
		r.W.Append(row)
	}
	result, err := analyze.Run(r.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Overhead; got.Percent >= 0 || got.Parts[0].Percent >= 0 || !strings.Contains(got.Method, "cut") {
		t.Errorf("%+v, want no percentage", got)
	}
}

func TestTier(t *testing.T) {
	for _, c := range []struct {
		parts [][2]string // tier and tier_refused of each
		want  account.Tier
	}{
		{nil, account.Tier{}},
		{[][2]string{{"kernel", ""}}, account.Tier{Name: "kernel"}},
		{[][2]string{{"hook", "operation not permitted"}}, account.Tier{Name: "hook", Refused: "operation not permitted"}},
		{[][2]string{{"kernel", ""}, {"hook", "no BTF"}, {"hook", "no BTF"}}, account.Tier{Name: "hook, kernel", Refused: "no BTF"}},
	} {
		r := NewRun(t)
		for i, part := range c.parts {
			on := r
			if i > 0 {
				on = r.Part(t, fmt.Sprintf("host-%d", i+1))
			}
			on.Meta("tier", part[0])
			if part[1] != "" {
				on.Meta("tier_refused", part[1])
			}
		}
		result, err := analyze.Run(r.Open(t), analyze.Rules)
		if err != nil {
			t.Fatal(err)
		}
		if result.Tier != c.want {
			t.Errorf("%v: %+v, want %+v", c.parts, result.Tier, c.want)
		}
	}
}

// TestProcesses: in the kernel tier, a process that the hook is not in and that
// was never sampled was seen by the kernel alone.
func TestProcesses(t *testing.T) {
	for _, tier := range []string{"kernel", "hook"} {
		r := NewRun(t)
		r.Meta("tier", tier)
		main := r.Process(-1, 0) // hooked, never sampled
		rows := []any{
			traces.Process{Head: traces.Head{TsNS: 1, Proc: 101}, Pid: 5101, Kind: "other", Hook: "none", Cmdline: "true"},
			traces.Process{Head: traces.Head{TsNS: 1, Proc: 102}, Pid: 5102, Kind: "python", Hook: "idle", Cmdline: "python3 -I a.py"},
			traces.Process{Head: traces.Head{TsNS: 2, Proc: 102}, Pid: 5102, Hook: "off", Exe: "/usr/bin/python3.11", Note: "started with -I, which ignores PYTHONPATH; torch is loaded"},
			traces.Process{Head: traces.Head{TsNS: 1, Proc: 103}, Pid: 5103, Kind: "python", Hook: "off", Cmdline: "python3 b.py"},
			traces.Memory{Head: traces.Head{TsNS: 2, Proc: 103}, Rss: 1},
		}
		for _, row := range rows {
			r.W.Append(row)
		}
		result, err := analyze.Run(r.Open(t), analyze.Rules)
		if err != nil {
			t.Fatal(err)
		}
		alone := 0
		if tier == "kernel" {
			alone = 2
		}
		want := account.Processes{Seen: 4, Kinds: map[string]int{"python": 3, "other": 1}, KernelOnly: alone, Hooked: 1, Watched: 1, Unhooked: []account.Unhooked{
			{Pid: 5102, Cmdline: "python3 -I a.py", Exe: "/usr/bin/python3.11", Reason: "started with -I, which ignores PYTHONPATH; torch is loaded", Torch: true,
				Fix: "start that Python without -I while you record"},
			{Pid: 5103, Cmdline: "python3 b.py", Reason: "the hook did not load (-I, -E, -S, or a cleaned environment)"},
		}}
		if diff := cmp.Diff(want, result.Processes); diff != "" {
			t.Errorf("tier %s, process %d (-want +got):\n%s", tier, main.Proc, diff)
		}
	}
}

// TestNothingToJudge: a run without a loader has no findings.
func TestNothingToJudge(t *testing.T) {
	r := NewRun(t)
	r.Process(-1, 0)
	r.Seal()
	result, err := analyze.Run(r.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Findings)+len(result.Timeline.Loaders) > 0 {
		t.Errorf("%+v", result)
	}
	if result.Overhead.Percent >= 0 {
		t.Error("an overhead although no CPU time was sampled")
	}
}

package analyze_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/analyze"
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
	result, err := analyze.Run(r.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []analyze.Loss{
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

// TestNothingToJudge: a run without a loader has no findings and no checks.
func TestNothingToJudge(t *testing.T) {
	r := NewRun(t)
	r.Process(-1, 0)
	r.Seal()
	result, err := analyze.Run(r.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Findings)+len(result.Checks)+len(result.Timeline.Loaders) > 0 {
		t.Errorf("%+v", result)
	}
	if result.Overhead.Percent >= 0 {
		t.Error("an overhead although no CPU time was sampled")
	}
}

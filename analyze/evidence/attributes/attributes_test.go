package attributes_test

import (
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/evidence/attributes"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// TestTooMany: where more values changed than are kept, nothing is known of any.
func TestTooMany(t *testing.T) {
	for _, c := range []struct {
		changes, scalars int
		gap              string
	}{
		{1000, 1, ""},
		{16_001, 0, "more values changed than are kept"},
	} {
		run := detecttest.NewRun(t)
		p := run.Process(-1, 0)
		run.Add(p.Proc, traces.Loader{Loader: 1, Length: 8, Persistent: true, NumWorkers: 1, Batched: "yes", File: "/home/me/proj/train.py", Line: 88},
			traces.Pass{Loader: 1, Phase: "begin"}, traces.Worker{Loader: 1, Pid: 5000, Phase: "begin"})
		run.Add(100, traces.Process{Pid: 5000, Kind: "worker", Hook: "on", Rank: -1}, traces.Worker{Pid: 5000, Phase: "ready"})
		for n := range c.changes {
			run.Add(p.Proc, traces.Attribute{Loader: 1, Pass: uint32(n), When: "iter", Path: "dataset.epoch", Class: "int", Value: fmt.Sprint(n)})
		}
		run.Seal()
		e, err := collect.Read(run.Open(t), attributes.Source)
		if err != nil {
			t.Fatal(err)
		}
		l := collect.Of(e, timeline.Source).Loaders[0]
		a := collect.Of(e, attributes.Source)
		if gap := a.Gap(timeline.Ranks{l}); gap != c.gap {
			t.Errorf("%d changes: gap %q, want %q", c.changes, gap, c.gap)
		}
		if got := len(a.Of(l, 1).Places); got != c.scalars {
			t.Errorf("%d changes: %d attributes, want %d", c.changes, got, c.scalars)
		}
	}
}

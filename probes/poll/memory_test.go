package poll

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

type collected []any

func (c *collected) Append(row any) { *c = append(*c, row) }

// When a process is measured, by what that costs.
func TestMeasure(t *testing.T) {
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		t.Skip("this kernel has no smaps_rollup: ", err)
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	now := time.Now()
	for name, tc := range map[string]struct {
		cost, measured time.Duration
		age            time.Duration // of the run
		due            time.Time
		waits          bool // the target is our helper still
		want           int
	}{
		"first":                        {want: 1},
		"not yet due":                  {due: now.Add(time.Second), want: 0},
		"again":                        {cost: time.Millisecond, want: 1},
		"too dear":                     {cost: time.Millisecond, measured: measureCredit, want: 0},
		"first, although it is dear":   {measured: measureCredit, want: 1},
		"first, when there were many":  {measured: 2*measureCredit + time.Millisecond, want: 0},
		"affordable after a long time": {cost: time.Millisecond, measured: measureCredit, age: time.Hour, want: 1},
		"the helper":                   {waits: true, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			var rows collected
			w := newWatcher(&probe.Recording{Rows: &rows, Procs: probe.NewProcs()})
			w.began, w.measured = now.Add(-tc.age), tc.measured
			p := w.adopt(int32(child.Process.Pid))
			if p == nil {
				t.Fatal("the child is not there")
			}
			if tc.waits {
				w.Target = p.pid
			}
			p.cost, p.nextRollup = tc.cost, tc.due
			w.measure(now)
			if len(rows) != tc.want {
				t.Fatalf("%d rows, want %d", len(rows), tc.want)
			}
			for _, r := range rows {
				if m := r.(traces.Memory); m.Source != "smaps_rollup" || m.Rss <= 0 || m.Threads != 1 {
					t.Errorf("row %+v", m)
				}
				if p.nextRollup.Before(now.Add(soonest)) || p.cost == 0 {
					t.Errorf("next %v, cost %v", p.nextRollup.Sub(now), p.cost)
				}
			}
		})
	}
}

// A process that another probe has seen is looked at without a round.
func TestNews(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	var rows collected
	w := newWatcher(&probe.Recording{Rows: &rows, Procs: probe.NewProcs()})
	pid := int32(child.Process.Pid)
	st, err := procfs.ReadStat(pid)
	if err != nil {
		t.Fatal(err)
	}
	w.news(time.Now())
	if len(w.procs) != 0 {
		t.Fatalf("known without being told: %+v", w.procs)
	}
	w.Procs.Of(pid, st.StartTicks)
	w.news(time.Now())
	if p := w.procs[pid]; p == nil || p.exe == "" {
		t.Fatalf("told of, and not looked at: %+v", p)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	w.Procs.Exit(&rows, pid, st.StartTicks, traces.Exit{Source: "kernel", Signal: 9, ExitCode: -1})
	w.news(time.Now())
	if w.procs[pid].gone.IsZero() {
		t.Error("its end went unnoticed")
	}
	for _, r := range rows {
		if e, ok := r.(traces.Exit); ok && e.Source == "gone" {
			t.Error("a second exit row")
		}
	}
}

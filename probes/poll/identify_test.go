package poll

import (
	"os/exec"
	"testing"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

// A process that was in the middle of exec has its command line a moment later.
func TestCommandLineLater(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	var rows collected
	w := &watcher{Recording: &probe.Recording{Rows: &rows, Procs: probe.NewProcs()}, procs: map[int32]*process{}, strangers: map[int32]uint64{}}
	p := w.adopt(int32(child.Process.Pid))
	if p == nil {
		t.Fatal("the child is not there")
	}
	p.exe, p.judged, p.nameless = procfs.Link(p.pid, "exe"), true, true
	for range 2 {
		w.identify(p, procfs.Stat{}, time.Now())
	}
	if len(rows) != 1 || rows[0].(traces.Process).Cmdline != "sleep 60" || rows[0].(traces.Process).Hook != "" {
		t.Errorf("rows %+v", rows)
	}
}

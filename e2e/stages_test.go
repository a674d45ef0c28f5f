package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dptrace/dptrace/probes/probetest"
)

// loopReport is what the report says of the stages of a loop.
type loopReport struct {
	Loops []struct {
		Stages []struct {
			Stage string  `json:"stage"`
			WorkS float64 `json:"work_s"`
		} `json:"stages"`
	} `json:"loops"`
}

// blockedWays is what each way to wait is called.
var blockedWays = []struct {
	way, called string
	often, disk bool
}{
	{way: "disk", called: "reading files", often: true, disk: true},
	{way: "mapped", called: "page faults: mapped files, swap", disk: true},
	{way: "sleep", called: "sleep", often: true},
	{way: "pipe", called: "pipes, sockets, devices"},
	{way: "lock", called: "locks, other threads"},
	{way: "child", called: "child processes"},
}

// TestBlocked: the report says what fetches are blocked in, and for how long, as the
// workers have measured it themselves.
func TestBlocked(t *testing.T) {
	p := python(t)
	if why := noKernelTier(); why != "" {
		t.Skip(why)
	}
	program, err := filepath.Abs("stages/blocked.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range blockedWays {
		t.Run(c.way, func(t *testing.T) {
			if testing.Short() && !c.often {
				t.Skip("run by make test-all")
			}
			t.Parallel()
			folder := t.TempDir()
			command := []string{p.Path, program, c.way, folder}
			if c.disk {
				command = append(command, probetest.SlowDisk(t, folder, 8<<20))
			}
			trace := filepath.Join(folder, "run.dptrace")
			recorded := run(t, folder, append([]string{dptrace, "record", "--quiet", "--tier", "kernel", "-o", trace, "--"}, command...)...)
			if recorded.code != 0 {
				t.Fatalf("exits %d\n%s", recorded.code, recorded.tail())
			}
			var r loopReport
			text := run(t, folder, dptrace, "report", "--format", "json", "--fail-on", "never", trace).stdout
			if err := json.Unmarshal([]byte(text), &r); err != nil || len(r.Loops) != 1 {
				t.Fatalf("%v: %d loops", err, len(r.Loops))
			}
			got := map[string]float64{}
			for _, s := range r.Loops[0].Stages {
				got[s.Stage] = s.WorkS
			}
			want := waited(t, folder)
			if off := got["blocked: "+c.called]/want - 1; off < -0.05 || off > 0.05 {
				t.Errorf("%.3f s, the workers have measured %.3f (%+.1f %%): %v", got["blocked: "+c.called], want, 100*off, got)
			}
			t.Logf("the workers have measured %.3f s: %v", want, got)
		})
	}
}

// waited is what all workers have measured, in seconds.
func waited(t *testing.T, folder string) (sum float64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "spent.*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%d workers have written, not 4: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ns, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += float64(ns) / 1e9
	}
	return sum
}

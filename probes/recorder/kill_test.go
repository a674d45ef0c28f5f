package recorder

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// killsVariable asks for more kills than the few of every test run:
// DPTRACE_KILLS=50 go test -run TestKill -v ./probes/recorder
const killsVariable = "DPTRACE_KILLS"

// trainer writes numbered records, about 2000 a second, until a file is there,
// and says at its end how many, and that nothing kept it from ending.
const trainer = `
import os, sys, time
from dptrace_hook.record import ring
print("ready", flush=True)
n = 0
while not os.path.exists(sys.argv[1]):
    ring.put_json(ring.OPTIMIZER, {"optimizer": n})
    n += 1
    time.sleep(0.0004)
print("trained", n)
`

// A recorder that is killed takes nothing along: the training ends as ever, and
// the trace is readable up to shortly before.
func TestKill(t *testing.T) {
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skipf("no python3 can be run: %v", err)
	}
	kills := 3
	if text := os.Getenv(killsVariable); text != "" {
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(trainer), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir()) // the sessions of dead recorders are left behind
	for i := range kills {
		after := time.Duration(rand.Int64N(int64(3 * time.Second)))
		tier := []string{TierHook, TierAuto}[i%2]
		t.Run(fmt.Sprintf("%d %s", i, tier), func(t *testing.T) {
			killOnce(t, strings.TrimSpace(string(python)), script, tier, after)
		})
	}
}

func killOnce(t *testing.T, python, script, tier string, after time.Duration) {
	trace, enough := filepath.Join(t.TempDir(), "t.dptrace"), filepath.Join(t.TempDir(), "enough")
	cmd := exec.Command("/proc/self/exe", "record", trace, tier, python, script, enough)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the training said %q", lines.Text())
	}
	time.Sleep(after)
	attached := programsOf(t, cmd.Process.Pid)
	if need, _ := unmet(); need == "" && (len(attached) > 0) != (tier != TierHook) {
		t.Errorf("tier %s: %d eBPF programs", tier, len(attached))
	}
	killed := probe.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(enough, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The training has the other end of stdout: it ends with it.
	if !lines.Scan() {
		t.Fatal("the training ended with its recorder")
	}
	var wrote int
	if _, err := fmt.Sscanf(lines.Text(), "trained %d", &wrote); err != nil {
		t.Errorf("the training said %q", lines.Text())
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the recorder ended before it was killed")
	}
	for _, id := range attached {
		if !goes(id) {
			t.Errorf("eBPF program %d is there after its recorder", id)
		}
	}
	run, err := traces.Open(trace)
	if err != nil {
		t.Fatalf("the trace cannot be read: %v", err)
	}
	if run.Parts[0].Sealed {
		t.Error("the trace says that it is complete")
	}
	rows, last := 0, killed-int64(after)
	for _, row := range traces.Rows[traces.Optimizer](run) {
		if row.Optimizer != uint32(rows) {
			t.Fatalf("row %d is record %d: something is missing in the middle", rows, row.Optimizer)
		}
		rows++
		last = row.TsNS
	}
	lost := time.Duration(killed - last)
	t.Logf("killed after %v: %d of %d records, the last %v lost", after.Round(time.Millisecond), rows, wrote, lost.Round(time.Millisecond))
	if rows > wrote {
		t.Errorf("%d rows of %d records", rows, wrote)
	}
	// How late a killed recorder was is a matter of time, hence of load.
	if os.Getenv(killsVariable) != "" && lost > time.Second {
		t.Errorf("%v are lost", lost)
	}
	for _, p := range run.Problems {
		if p.Kind != traces.Torn && p.Kind != traces.Missing {
			t.Error(p)
		}
	}
}

// goes reports whether an eBPF program is freed, which takes the kernel a moment
// after its last holder has ended.
func goes(id ebpf.ProgramID) bool {
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			return true
		}
		p.Close()
	}
	return false
}

// programsOf lists the eBPF programs that a process holds.
func programsOf(t *testing.T, pid int) (ids []ebpf.ProgramID) {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f) // it may have been closed
		for line := range strings.Lines(string(b)) {
			var id ebpf.ProgramID
			if _, err := fmt.Sscanf(line, "prog_id: %d", &id); err == nil && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// The next recording removes what a killed one has left, but not what still
// runs.
func TestRemoveStale(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	dead, err := newSession(base, filepath.Join(t.TempDir(), "part"), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	used, err := newSession(base, filepath.Join(t.TempDir(), "part"), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	alive, err := newSession(base, filepath.Join(t.TempDir(), "part"), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer alive.remove()
	user := exec.Command("sleep", "60")
	user.Env = []string{"PYTHONPATH=" + used.hook}
	if err := user.Start(); err != nil {
		t.Fatal(err)
	}
	dead.unlock()
	used.unlock()
	removeStale(base)
	for dir, want := range map[string]bool{dead.dir: false, used.dir: true, alive.dir: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
	if err := user.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = user.Wait()
	removeStale(base)
	if _, err := os.Stat(used.dir); err == nil {
		t.Errorf("%s is there after its last user has ended", used.dir)
	}
}

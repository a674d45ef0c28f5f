package process_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probetest"
)

// held lists the eBPF programs that a process has open, by id.
func held(t *testing.T, pid int) (ids []ebpf.ProgramID) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, _ := os.ReadFile(f) // it may have been closed
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "prog_id:"); ok {
				id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, ebpf.ProgramID(id))
			}
		}
	}
	return ids
}

// A recorder that is killed leaves no program behind, pinned or attached, and
// the command goes on to its end.
func TestKilledRecorderLeavesNothing(t *testing.T) {
	probetest.NeedKernel(t)
	dir := t.TempDir()
	goOn, done := filepath.Join(dir, "go-on"), filepath.Join(dir, "done")
	cmd := exec.Command("/proc/self/exe", "record", filepath.Join(dir, "t.dptrace"),
		"sh", "-c", "echo ready; until [ -e "+goOn+" ]; do sleep 0.05; done; echo yes > "+done)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the command said %q", lines.Text())
	}
	programs := held(t, cmd.Process.Pid)
	if len(programs) < 6 {
		t.Fatalf("the recorder holds %d programs: this test looks in the wrong place", len(programs))
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	left := func() (n int) {
		for _, id := range programs {
			if p, err := ebpf.NewProgramFromID(id); err == nil {
				p.Close()
				n++
			}
		}
		return n
	}
	if !eventually(func() bool { return left() == 0 }) { // they are freed after a grace period
		t.Errorf("%d programs are left", left())
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { _, err := os.Stat(done); return err == nil }) {
		t.Error("the command did not go on")
	}
}

// eventually reports whether something comes true; it waits long, as it judges
// no time.
func eventually(is func() bool) bool {
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}

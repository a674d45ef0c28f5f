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
	done := filepath.Join(t.TempDir(), "done")
	cmd := exec.Command("/proc/self/exe", "record", filepath.Join(t.TempDir(), "t.dptrace"),
		"sh", "-c", "echo ready; sleep 1; echo yes > "+done)
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
	for range 100 { // they are freed after a grace period
		if left() == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if n := left(); n != 0 {
		t.Errorf("%d programs are left", n)
	}
	for range 100 {
		if _, err := os.Stat(done); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the command did not go on")
}

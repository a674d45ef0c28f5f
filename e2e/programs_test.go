package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestPrograms records every program and compares what is found with what the
// program says about itself; its exit code and stdout must stay the same.
func TestPrograms(t *testing.T) { eachCase(t, "programs", testCase.testBoth) }

// eachCase runs a test of each case of a folder that this Python can run.
func eachCase(t *testing.T, folder string, test func(testCase, *testing.T, interpreter)) {
	t.Helper()
	p := python(t)
	t.Logf("Python %s, torch %s, numpy %s", p.Python, p.Torch, p.Numpy)
	for _, c := range readCases(t, folder, p.Torch) {
		if testing.Short() && !c.often {
			continue
		}
		t.Run(c.name(), func(t *testing.T) {
			if holds, err := versionHolds(p.Torch, c.torch); err != nil {
				t.Fatal(err)
			} else if !holds {
				t.Skipf("needs torch %s, have %s", c.torch, p.Torch)
			}
			t.Parallel()
			if c.needs != "" && !p.can(c.needs) {
				t.Skipf("needs %s", c.needs)
			}
			test(c, t, p)
		})
	}
}

// testBoth runs the case plain and recorded.
func (c testCase) testBoth(t *testing.T, p interpreter) {
	plain := c.runPlain(t, p)
	recorded := c.test(t, p)
	if recorded.code != plain.code {
		t.Errorf("exits %d, without dptrace %d:\n%s", recorded.code, plain.code, recorded.tail())
	}
	if recorded.stdout != plain.stdout {
		t.Errorf("stdout is\n%s\nwithout dptrace\n%s", recorded.stdout, plain.stdout)
	}
}

// test records the case and looks at what is said.
func (c testCase) test(t *testing.T, p interpreter) result {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "run.dptrace")
	recorded, r := recordTo(t, trace, c.folder, c.command(p, c.program)...)
	if recorded.code != c.exit {
		t.Fatalf("exits %d, want %d:\n%s", recorded.code, c.exit, recorded.tail())
	}
	for _, e := range c.expect {
		if ok, near := r.satisfies(e); !ok {
			t.Errorf("not found: %s %s: %s; there is\n%s", e.rule, e.certainty, strings.Join(e.words, " … "), near)
		}
	}
	for _, alarm := range r.alarms(c.expect) {
		t.Errorf("false alarm: %s", alarm)
	}
	for _, want := range c.checks {
		if ok, have := r.ended(want.rule, want.status); !ok {
			t.Errorf("%s is not %s but\n%s", want.rule, want.status, have)
		}
	}
	if c.printFix && !t.Failed() {
		c.testFix(t, p, r, trace)
	}
	return recorded
}

func (c testCase) command(p interpreter, program string) []string {
	command := []string{p.Path}
	if c.ranks > 0 {
		// A free port, so that runs may go side by side. There is no local rank 9: without these two flags torch 1.13
		// does not start under Python 3.11. Before torch 2.4 torchrun looks after its ranks once in five seconds only.
		command = append(command, "-m", "torch.distributed.run", "--nproc_per_node="+strconv.Itoa(c.ranks),
			"--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0", "-r", "9:1", "-t", "9:1", "--monitor_interval=0.1")
	}
	return append(append(command, program), c.args...)
}

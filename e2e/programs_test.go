package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPrograms records every program and compares what is found with what the
// program says about itself; its exit code and stdout must stay the same.
func TestPrograms(t *testing.T) {
	p := python(t)
	t.Logf("Python %s, torch %s, numpy %s", p.Python, p.Torch, p.Numpy)
	for _, c := range readCases(t, p.Torch) {
		t.Run(c.name(), func(t *testing.T) {
			if holds, err := versionHolds(p.Torch, c.torch); err != nil {
				t.Fatal(err)
			} else if !holds {
				t.Skipf("needs torch %s, have %s", c.torch, p.Torch)
			}
			if c.needs != "" && !p.can(c.needs) {
				t.Skipf("needs %s", c.needs)
			}
			t.Parallel()
			c.test(t, p)
		})
	}
}

func (c testCase) test(t *testing.T, p interpreter) {
	plain := run(t, "programs", c.command(p, c.program)...)
	if plain.code != 0 {
		t.Fatalf("exits %d without dptrace:\n%s", plain.code, plain.tail())
	}
	recorded, r := record(t, "programs", c.command(p, c.program)...)
	if recorded.code != plain.code {
		t.Errorf("exits %d, without dptrace %d:\n%s", recorded.code, plain.code, recorded.tail())
	}
	if recorded.stdout != plain.stdout {
		t.Errorf("stdout is\n%s\nwithout dptrace\n%s", recorded.stdout, plain.stdout)
	}
	for _, e := range c.expect {
		if ok, near := r.satisfies(e); !ok {
			t.Errorf("not found: %s %s in %s, with its draws; there is\n%s", e.rule, e.certainty, strings.Join(e.slot, " … "), near)
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
		c.testFix(t, p, r)
	}
}

func (c testCase) command(p interpreter, program string) []string {
	command := []string{p.Path}
	if c.ranks > 0 {
		// A free port, so that runs may go side by side. There is no local rank 9: without these two flags torch 1.13
		// does not start under Python 3.11.
		command = append(command, "-m", "torch.distributed.run", "--nproc_per_node="+strconv.Itoa(c.ranks),
			"--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0", "-r", "9:1", "-t", "9:1")
	}
	return append(append(command, program), c.args...)
}

var (
	workerInit = regexp.MustCompile(`worker_init_fn=\w+`)
	// The line of a printed fix that says how the DataLoader gets its function;
	// the object that it calls collate_fn has this name in the program.
	printed = regexp.MustCompile(`(?m)^# .*DataLoader\(\.\.\., (worker_init_fn=.*)\)`)
)

// testFix puts the printed fix in at the program's "# FIX" line and what it says
// into its DataLoader, and records again: nothing must be left.
func (c testCase) testFix(t *testing.T, p interpreter, r report) {
	t.Helper()
	fix, init := "", ""
	for _, f := range r.Findings {
		if line := printed.FindStringSubmatch(f.Fix); f.Certainty != "note" && line != nil {
			fix, init = f.Fix, line[1]
			break
		}
	}
	if fix == "" {
		t.Fatalf("no finding prints a function for worker_init_fn as its fix: %+v", r.Findings)
	}
	source, err := os.ReadFile(filepath.Join("programs", c.program))
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	if !strings.Contains(text, "\n# FIX\n") || !workerInit.MatchString(text) {
		t.Fatalf("%s has no place for a fix", c.program)
	}
	text = strings.Replace(text, "\n# FIX\n", "\n"+fix+"\n\n\n", 1)
	text = workerInit.ReplaceAllLiteralString(text, init)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("programs")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, c.program), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	recorded, repaired := record(t, folder, c.command(p, c.program)...)
	if recorded.code != 0 {
		t.Fatalf("with the printed fix the program exits %d:\n%s\n%s", recorded.code, fix, recorded.tail())
	}
	for _, alarm := range repaired.alarms(nil) {
		t.Errorf("with the printed fix there is still %s\n%s", alarm, fix)
	}
}

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mended is a program that says where the printed fix goes (see repair), and what it runs in.
type mended struct {
	name, program, rule string
	code                int // the broken program's exit code
	shm, limited        bool
	shell               string // what is done in the shell before, in both runs
	inShell             string // the fix is what stands behind this in a line, for the shell; the program stays
}

var fixes = []mended{
	{name: "fewer batches ahead", program: "shm.py", rule: "shm-exhausted", shm: true},
	{name: "a larger dev shm", program: "shm.py", rule: "shm-exhausted", shm: true, inShell: "# your own machine: "},
	{name: "opened in the worker", program: "position.py", rule: "shared-file-position"},
	{name: "read without a position", program: "pread.py", rule: "shared-file-position"},
	{name: "copies are kept", program: "kept.py", rule: "fd-exhausted", code: 1},
	{name: "more descriptors", program: "tensors.py", rule: "fd-exhausted", code: 1, shell: "ulimit -Sn 400", inShell: "of a unit)\n"},
	{name: "sharing by name", program: "tensors.py", rule: "fd-exhausted", code: 1, shell: "ulimit -Sn 400"},
	{name: "a bounded cache", program: "cache.py", rule: "memory-growth-cache", limited: true},
}

// TestFixes: what the rules about memory, shared memory and files print as their fix makes the next recording clean.
func TestFixes(t *testing.T) {
	if testing.Short() {
		t.Skip("run by make test-all")
	}
	p := python(t)
	for _, c := range fixes {
		t.Run(c.name, func(t *testing.T) {
			f := formOf(t, "kernel", p)
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("fixes", c.program))
			if err != nil {
				t.Fatal(err)
			}
			fix := c.printed(t, c.record(t, p, f, string(text), "", c.code))
			program, shell := string(text), ""
			if c.inShell != "" {
				_, shell, _ = strings.Cut(fix, c.inShell)
				shell, _, _ = strings.Cut(shell, "\n")
			} else if program, err = repair(program, fix); err != nil {
				t.Fatalf("%v\n%s", err, fix)
			}
			r := c.record(t, p, f, program, shell, 0)
			if ok, have := r.ended(c.rule, "clean"); !ok {
				t.Errorf("repaired, %s is not clean but\n%s\n%s\n%s", c.rule, have, shell, program)
			}
			for _, alarm := range r.alarms(nil) {
				t.Errorf("false alarm in the repaired program: %s\n%s", alarm, program)
			}
		})
	}
}

func (c mended) printed(t *testing.T, r report) string {
	t.Helper()
	for _, f := range r.Findings {
		if f.Rule == c.rule && f.Certainty != "note" {
			return f.Fix
		}
	}
	t.Fatalf("%s finds nothing: %+v", c.rule, r.Checks)
	return ""
}

func (c mended) record(t *testing.T, p interpreter, f form, program, shell string, code int) report {
	t.Helper()
	folder := t.TempDir()
	file, trace := filepath.Join(folder, "train.py"), filepath.Join(folder, "run.dptrace")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	command := []string{dptrace, "record", "--quiet", "--tier", f.tier, "-o", trace, "--", p.Path, file}
	for _, first := range []string{shell, c.shell} { // the last one is done first
		if first != "" {
			command = append([]string{"sh", "-c", first + ` && exec "$@"`, "sh"}, command...)
		}
	}
	if c.shm {
		command = smallShm(t, command)
	}
	if c.limited {
		command = append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, limitedGroup(t)}, command...)
	}
	recorded := run(t, folder, command...)
	if recorded.code != code {
		t.Fatalf("exits %d, want %d:\n%s", recorded.code, code, recorded.tail())
	}
	return reportOf(t, trace)
}

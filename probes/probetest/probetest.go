// Package probetest records small programs with all probes, for the tests of
// those that need the whole recorder around them.
package probetest

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/probes/recorder"
	"github.com/dptrace/dptrace/traces"
)

// Main is a TestMain: the recorder starts the test binary again, as the helpers
// that `dptrace` is in earnest.
func Main(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case recorder.HelperCommand:
			fmt.Fprintln(os.Stderr, recorder.Helper(os.Args[2:]))
			os.Exit(recorder.ExitNotExecutable)
		case recorder.WitnessCommand:
			_ = recorder.Witness(os.Args[2:]) // its end is all that is asked of it
			os.Exit(0)
		case "record": // for the tests that kill it: record FOLDER COMMAND…
			how, err := recorder.Run(recorder.Options{Output: os.Args[2], Command: os.Args[3:],
				Tier: recorder.TierKernel, Stderr: os.Stderr, Quiet: true})
			code := how.Code()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				code, _ = recorder.AsFailure(err)
			}
			os.Exit(code)
		}
	}
	os.Exit(m.Run())
}

// NeedKernel skips a test where the kernel tier cannot be had for lack of
// privilege. Root on a kernel with BTF must have it: there the test goes on, and
// fails if the tier does not come up.
func NeedKernel(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		t.Skipf("SKIPPED %s: this kernel has no BTF: %v", t.Name(), err)
	}
	if os.Geteuid() != 0 {
		t.Skipf("SKIPPED %s: it needs root, or CAP_BPF and CAP_PERFMON", t.Name())
	}
}

// Kernel records a command in the kernel tier and returns its trace and exit code.
func Kernel(t testing.TB, command ...string) (*traces.Run, int) {
	t.Helper()
	return KernelTo(t, filepath.Join(t.TempDir(), "t.dptrace"), command...)
}

// KernelTo is Kernel that says where the trace shall be.
func KernelTo(t testing.TB, dir string, command ...string) (*traces.Run, int) {
	t.Helper()
	NeedKernel(t)
	var stderr strings.Builder
	how, err := recorder.Run(recorder.Options{Command: command, Output: dir,
		Tier: recorder.TierKernel, Stderr: &stderr, Quiet: true})
	if err != nil {
		t.Fatalf("record: %v\n%s", err, stderr.String())
	}
	run, err := traces.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run, how.Code()
}

// Rows reads all rows of a table.
func Rows[T any](t testing.TB, run *traces.Run) []T {
	t.Helper()
	var rows []T
	for _, row := range traces.Rows[T](run) {
		rows = append(rows, row)
	}
	for _, p := range run.Problems {
		t.Errorf("trace: %s", p)
	}
	return rows
}

// Python is an interpreter of the standard library alone; the test is skipped
// where there is none.
func Python(t testing.TB) string {
	t.Helper()
	for _, dir := range append(strings.Split(os.Getenv("PATH"), ":"), "/usr/bin") {
		path := filepath.Join(dir, "python3")
		if st, err := os.Stat(path); err == nil && st.Mode()&0o111 != 0 && !strings.Contains(dir, "shims") { // pyenv's shims are shell scripts
			return path
		}
	}
	t.Skipf("SKIPPED %s: no python3", t.Name())
	return ""
}

// Script writes a program and returns its path.
func Script(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.py")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// SameFields fails if two structs do not have the same fields at the same places: what bpf2go makes of one struct of C in
// several packages, and what they share.
func SameFields(t *testing.T, a, b any) {
	t.Helper()
	fields := func(of any) (all []string) {
		for f := range reflect.TypeOf(of).Fields() {
			all = append(all, fmt.Sprint(f.Name, " ", f.Type, " at ", f.Offset))
		}
		return all
	}
	if fa, fb := fields(a), fields(b); !slices.Equal(fa, fb) {
		t.Errorf("%T has %q, %T has %q", a, fa, b, fb)
	}
}

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// positionCases are told by the kernel tier. Without it who moves a position is
// not seen: there the bugs are never proven and never clean.
var positionCases = []tierCase{
	{name: "a seek, then a read", often: true, command: "python positions.py seek",
		kernel: "shared-file-position proven Workers 0 and 1 records.bin"},
	{name: "a worker and the main process", command: "python positions.py main",
		kernel: "shared-file-position proven and another process records.bin"},
	{name: "a lock that is no lock between processes", command: "python positions.py threadlock",
		kernel: "shared-file-position proven Workers 0 and 1 records.bin"},

	{name: "each its own", command: "python positions.py own", kernel: "shared-file-position clean"},
	{name: "pread", command: "python positions.py pread", kernel: "shared-file-position clean"},
	{name: "a lock around both", often: true, command: "python positions.py lock", kernel: "shared-file-position clean"},
	{name: "a queue of records", command: "python positions.py queue", kernel: "shared-file-position found"}, // a note
}

// TestPositions runs the programs that read one file in several processes.
func TestPositions(t *testing.T) {
	p := python(t)
	for _, c := range positionCases {
		if testing.Short() && !c.often {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			f := formOf(t, "kernel", p)
			t.Parallel()
			c.test(t, p, f, "files", nil)
		})
	}
}

// TestPositionsHook: how much is seen depends on how long the workers live, and a
// position that moves may be locked. Nothing is proven by that.
func TestPositionsHook(t *testing.T) {
	p := python(t)
	for _, how := range []string{"seek", "own"} {
		t.Run(how, func(t *testing.T) {
			if testing.Short() {
				t.Skip("run by make test-all")
			}
			t.Parallel()
			folder := t.TempDir()
			program, err := filepath.Abs("files/positions.py")
			if err != nil {
				t.Fatal(err)
			}
			trace := filepath.Join(folder, "run.dptrace")
			if recorded := run(t, folder, dptrace, "record", "--quiet", "--tier", "hook", "-o", trace, "--", p.Path, program, how); recorded.code != 0 {
				t.Fatalf("exits %d\n%s", recorded.code, recorded.tail())
			}
			var r report
			if err := json.Unmarshal([]byte(run(t, folder, dptrace, "report", "--format", "json", "--fail-on", "never", trace).stdout), &r); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, c := range r.Checks {
				if c.Rule == "shared-file-position" {
					got = c.Status
				}
			}
			for _, f := range r.Findings {
				if f.Rule == "shared-file-position" {
					got = f.Certainty
				}
			}
			if want := map[string]string{"seek": "likely cannot-tell", "own": "clean cannot-tell"}[how]; got == "" || !strings.Contains(want, got) {
				t.Errorf("%q, want one of %s", got, want)
			}
		})
	}
}

var descriptorCases = []tierCase{
	{name: "batches are kept", often: true, command: "python descriptors.py kept",
		hook: "fd-exhausted proven The training process ran out of descriptors tensors", kernel: "same"},
	{name: "a batch of more tensors than descriptors", command: "python descriptors.py large",
		hook: "fd-exhausted cannot-tell", kernel: "fd-exhausted proven Worker 0 ran out of descriptors"},
	{name: "a file is opened for each sample", command: "python descriptors.py opened",
		hook: "fd-exhausted proven Worker 0 ran out of descriptors", kernel: "same"},

	{name: "copies are kept", often: true, command: "python descriptors.py copied", hook: "fd-exhausted clean", kernel: "same"},
	{name: "a window of batches is kept", command: "python descriptors.py window", hook: "fd-exhausted clean", kernel: "same"},
}

// TestDescriptors runs the programs that have few descriptors.
func TestDescriptors(t *testing.T) { eachTier(t, "files", descriptorCases, nil) }

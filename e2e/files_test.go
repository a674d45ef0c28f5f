package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// kernelCases are told by the kernel tier. Without it who moves a position is not
// seen, nor who is refused a descriptor: there the bugs are never proven and never
// clean, see TestWithoutKernel.
var kernelCases = []tierCase{
	{name: "a seek, then a read", often: true, command: "python positions.py seek",
		kernel: "shared-file-position proven Workers 0 and 1 records.bin (Records.__init__)"},
	{name: "a worker and the main process", command: "python positions.py main",
		kernel: "shared-file-position proven and another process records.bin (Records.__init__)"},
	{name: "closed by the main process when the workers have it", command: "python positions.py closed",
		kernel: "shared-file-position proven Workers 0 and 1 records.bin (Records.__init__)"},
	{name: "a lock that is no lock between processes", command: "python positions.py threadlock",
		kernel: "shared-file-position proven Workers 0 and 1 records.bin (Records.__init__)"},

	{name: "a batch of more tensors than descriptors", command: "python descriptors.py large",
		kernel: "fd-exhausted likely Worker 0 ran out of descriptors"}, // no batch comes: torch says that it waited too long

	{name: "each its own", command: "python positions.py own", kernel: "shared-file-position clean"},
	{name: "pread", command: "python positions.py pread", kernel: "shared-file-position clean"},
	{name: "a lock around both", often: true, command: "python positions.py lock", kernel: "shared-file-position cannot-tell"},
	{name: "a queue of records", command: "python positions.py queue", kernel: "shared-file-position found"}, // a note
}

// TestFiles runs the programs that share files, and that lack descriptors.
func TestFiles(t *testing.T) {
	p := python(t)
	for _, c := range kernelCases {
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

// TestWithoutKernel: how much is seen depends on how long the workers live, and a
// position that moves may be locked. Nothing is proven by that.
func TestWithoutKernel(t *testing.T) {
	p := python(t)
	for command, want := range map[string]string{
		"positions.py seek":    "shared-file-position: likely cannot-tell",
		"positions.py own":     "shared-file-position: clean cannot-tell",
		"descriptors.py large": "fd-exhausted: likely cannot-tell",
	} {
		program, how, _ := strings.Cut(command, " ")
		rule, verdicts, _ := strings.Cut(want, ": ")
		t.Run(command, func(t *testing.T) {
			if testing.Short() {
				t.Skip("run by make test-all")
			}
			t.Parallel()
			folder := t.TempDir()
			path, err := filepath.Abs("files/" + program)
			if err != nil {
				t.Fatal(err)
			}
			trace := filepath.Join(folder, "run.dptrace")
			if recorded := run(t, folder, dptrace, "record", "--quiet", "--tier", "hook", "-o", trace, "--", p.Path, path, how); recorded.code != 0 {
				t.Fatalf("exits %d\n%s", recorded.code, recorded.tail())
			}
			var r report
			if err := json.Unmarshal([]byte(run(t, folder, dptrace, "report", "--format", "json", "--fail-on", "never", trace).stdout), &r); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, c := range r.Checks {
				if c.Rule == rule {
					got = c.Status
				}
			}
			for _, f := range r.Findings {
				if f.Rule == rule {
					got = f.Certainty
				}
			}
			if got == "" || !strings.Contains(verdicts, got) {
				t.Errorf("%q, want one of %s", got, verdicts)
			}
		})
	}
}

var descriptorCases = []tierCase{
	{name: "batches are kept", often: true, command: "python descriptors.py kept",
		hook: "fd-exhausted proven The training process ran out of descriptors tensors", kernel: "same"},
	{name: "a file is opened for each sample", command: "python descriptors.py opened",
		hook: "fd-exhausted proven Worker 0 ran out of descriptors", kernel: "same"},

	{name: "copies are kept", often: true, command: "python descriptors.py copied", hook: "fd-exhausted clean", kernel: "same"},
	{name: "a window of batches is kept", command: "python descriptors.py window", hook: "fd-exhausted clean", kernel: "same"},
}

// TestDescriptors runs the programs that have few descriptors.
func TestDescriptors(t *testing.T) { eachTier(t, "files", descriptorCases, nil) }

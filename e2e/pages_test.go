package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/dptrace/dptrace/docs"
)

// TestPages runs the programs of docs/rules: the failing one has what its page
// is about, as surely as the page says, and the fixed one has nothing. `make test`
// runs a few of the failing ones.
func TestPages(t *testing.T) {
	p := python(t)
	often := []string{"rng-duplicate-workers", "memory-growth-cow", "shard-duplicate-workers", "sampler-no-set-epoch"}
	for _, id := range docs.Rules() {
		page, _ := docs.Rule(id)
		for _, e := range docs.Examples(page) {
			if testing.Short() && (e.Kind == "fixed" || !slices.Contains(often, id)) {
				continue
			}
			t.Run(id+"_"+e.Kind, func(t *testing.T) {
				if why := noKernelTier(); e.Certainty == "kernel" && why != "" {
					t.Skipf("%s: %s", t.Name(), why)
				}
				if e.Certainty == "cuda" {
					if why := noCuda(p); why != "" {
						t.Skipf("%s: %s", t.Name(), why)
					}
				}
				t.Parallel()
				folder := t.TempDir()
				if err := os.WriteFile(filepath.Join(folder, "program.py"), []byte(e.Code), 0o600); err != nil {
					t.Fatal(err)
				}
				program, r := onPage(t, e, folder, p.Path, "program.py")
				if program.code != 0 {
					t.Fatalf("exits %d:\n%s", program.code, program.tail())
				}
				if e.Certainty == "timing" {
					timing(t, id, e.Kind, r)
					return
				}
				found := false
				for _, f := range r.Findings {
					found = found || f.Rule == id && (f.Certainty == "proven" || e.Certainty == "note")
				}
				if want := e.Kind == "failing"; found != want {
					_, near := r.satisfies(expectation{rule: id})
					t.Errorf("%s: %v, want %v; there is\n%s", e.Certainty, found, want, near)
				}
				if e.Kind == "fixed" {
					for _, alarm := range r.alarms(nil) {
						t.Errorf("false alarm: %s", alarm)
					}
				}
			})
		}
	}
}

// noCuda says why copies to a CUDA device cannot be made or seen here, or "". A driver does not suffice: torch may have been built without CUDA.
func noCuda(p interpreter) string {
	if noDevice.Do(func() { noDevice.err = exec.Command(p.Path, "-c", "import torch; torch.zeros(1).cuda()").Run() }); noDevice.err != nil {
		return "no CUDA device that torch can use: " + noDevice.err.Error()
	}
	return noKernelTier()
}

var noDevice struct {
	sync.Once
	err error
}

// onPage records a program of a page; those about shared memory where there is little of it.
func onPage(t *testing.T, e docs.Example, folder string, command ...string) (result, report) {
	t.Helper()
	if e.Certainty != "shm" {
		return record(t, folder, command...)
	}
	trace := filepath.Join(t.TempDir(), "run.dptrace")
	recorded := run(t, folder, smallShm(t, append([]string{dptrace, "record", "--quiet", "-o", trace, "--"}, command...))...)
	return recorded, reportOf(t, trace)
}

// timing checks a program that is about time, on a machine of which nobody knows what
// else it does: what is there is found or cannot be told, and what is not there is not
// proven.
func timing(t *testing.T, id, kind string, r report) {
	t.Helper()
	switch kind {
	case "failing":
		for _, c := range r.Checks {
			if c.Rule == id && c.Status != "found" && c.Status != "cannot-tell" {
				t.Errorf("%s: %s (%s), want found, or cannot-tell", kind, c.Status, c.Reason)
			}
		}
	case "fixed":
		for _, f := range r.Findings {
			if f.Rule == id && f.Certainty == "proven" {
				t.Errorf("%s: proven: %s", kind, f.Title)
			}
		}
	}
}

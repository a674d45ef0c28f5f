package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// copiesCase is a way of copying batches to a device, and what may be said of it:
// RULE CERTAINTY or RULE STATUS, the surest that a rule says.
type copiesCase struct {
	way  string
	said []string // one of them
	bug  string   // the only rule that may find something; "" none
}

var copiesCases = []copiesCase{
	{"pageable", []string{"copy-pageable proven", "copy-pageable likely"}, "copy-pageable"},
	{"unhelped", []string{"copy-pageable proven", "copy-pageable likely"}, "copy-pageable"},
	{"waits", []string{"copy-pinned-sync proven", "copy-pinned-sync likely"}, "copy-pinned-sync"},
	{"cast", []string{"copy-unpinned-by-cast proven", "copy-unpinned-by-cast likely"}, "copy-unpinned-by-cast"},
	{"strided", []string{"copy-unpinned-by-cast proven", "copy-unpinned-by-cast likely"}, "copy-unpinned-by-cast"},
	{"noop", []string{"pin-memory-noop proven"}, "pin-memory-noop"},

	{"good", []string{"copy-pageable clean", "copy-pageable cannot-tell"}, ""},
	{"cast_later", []string{"copy-unpinned-by-cast clean", "copy-unpinned-by-cast cannot-tell"}, ""},
	{"item", []string{"copy-pinned-sync clean", "copy-pinned-sync cannot-tell"}, ""},
	{"checkpoint", []string{"copy-pageable clean", "copy-pageable cannot-tell"}, ""},
	{"thread", []string{"copy-pageable cannot-tell"}, ""},
}

// TestCopies runs a training whose device is a stand-in for CUDA, which the kernel
// tier watches as it would the real one. How long a wait is depends on the machine:
// too short a one is no finding.
func TestCopies(t *testing.T) {
	p := python(t)
	if why := noKernelTier(); why != "" {
		t.Skipf("%s: %s", t.Name(), why)
	}
	libraries := standIn(t)
	often := []string{"pageable", "good"}
	for _, c := range copiesCases {
		if testing.Short() && !slices.Contains(often, c.way) {
			continue
		}
		t.Run(c.way, func(t *testing.T) {
			t.Parallel()
			c.test(t, p, libraries)
		})
	}
}

// standIn compiles the libraries of probes/cuda that stand in for NVIDIA's.
func standIn(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skipf("%s: no C compiler", t.Name())
	}
	folder := t.TempDir()
	for library, source := range map[string]string{"libcuda.so.1": "libcuda.c", "libcudart.so.13": "libcudart.c"} {
		if out, err := exec.Command(cc, "-shared", "-fPIC", "-O2", "-o", filepath.Join(folder, library),
			filepath.Join("../probes/cuda/testdata/fake", source), "-ldl", "-lpthread").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", source, err, out)
		}
	}
	return folder
}

func (c copiesCase) test(t *testing.T, p interpreter, libraries string) {
	program, err := filepath.Abs("copies/train.py")
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "run.dptrace")
	recorded := run(t, t.TempDir(), "env", "LD_LIBRARY_PATH="+libraries, dptrace, "record", "--tier", "kernel", "-o", trace, "--",
		p.Path, program, libraries, c.way)
	if recorded.code != 0 {
		t.Fatalf("exits %d:\n%s", recorded.code, recorded.tail())
	}
	r := reportOf(t, trace)
	c.judge(t, r)
	for _, f := range r.Findings {
		if e := (expectation{rule: f.Rule, certainty: f.Certainty, words: []string{"Asked for at", "train.py:"}}); strings.HasPrefix(f.Rule, "copy-") {
			if ok, said := r.satisfies(e); !ok {
				t.Errorf("the line that asks for the copies is not said:\n%s", said)
			}
		}
	}
}

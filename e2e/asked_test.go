package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// askedCases are ways of asking torch for copies, of which the hook alone tells: nothing is proven by it.
var askedCases = []copiesCase{
	{"pageable", []string{"copy-pageable likely"}, "copy-pageable"},
	{"unhelped", []string{"copy-pageable likely"}, "copy-pageable"},
	{"into", []string{"copy-pageable likely"}, "copy-pageable"},
	{"compiled", []string{"copy-pageable likely"}, "copy-pageable"},
	{"waits", []string{"copy-pinned-sync likely"}, "copy-pinned-sync"},
	{"nested", []string{"copy-pinned-sync likely"}, "copy-pinned-sync"}, // a part of the batch, in a list of its dictionary
	{"cast", []string{"copy-unpinned-by-cast likely"}, "copy-unpinned-by-cast"},
	{"strided", []string{"copy-unpinned-by-cast likely"}, "copy-unpinned-by-cast"},

	{"good", []string{"copy-pageable clean"}, ""},
	{"none", []string{"copy-pageable cannot-tell", "copy-pageable not-applicable"}, ""},
}

// TestCopiesAsked runs a training on a device in Python, with record --copies: the program's result is the same to the last bit as
// without, and each copy is told once.
func TestCopiesAsked(t *testing.T) {
	p := python(t)
	if err := exec.Command(p.Path, "-W", "ignore", "-c",
		"from torch.utils.backend_registration import _setup_privateuseone_for_python_backend as s; s('npu'); import torch; torch._C._acc.create_empty_tensor").Run(); err != nil {
		t.Skipf("%s: torch has no devices in Python", t.Name())
	}
	program, err := filepath.Abs("copies/asked.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range askedCases {
		if testing.Short() && !slices.Contains([]string{"pageable", "good"}, c.way) {
			continue
		}
		t.Run(c.way, func(t *testing.T) {
			t.Parallel()
			plain := run(t, t.TempDir(), p.Path, program, c.way)
			trace := filepath.Join(t.TempDir(), "run.dptrace")
			recorded := run(t, t.TempDir(), dptrace, "record", "--tier", "hook", "--copies", "-q", "-o", trace, "--", p.Path, program, c.way)
			if plain.code != 0 || recorded.code != 0 || plain.stdout != recorded.stdout {
				t.Fatalf("exits %d, recorded %d:\n%s%s\n%s\n%s", plain.code, recorded.code, plain.stdout, recorded.stdout, plain.tail(), recorded.tail())
			}
			r := reportOf(t, trace)
			c.judge(t, r)
			for _, f := range r.Findings {
				if strings.HasPrefix(f.Rule, "copy-") && (f.Certainty == "proven" || f.Proof != "hook") {
					t.Errorf("%s %s, by %s", f.Rule, f.Certainty, f.Proof)
				}
				if e := (expectation{rule: f.Rule, certainty: f.Certainty, words: []string{"Asked for at", "asked.py:"}}); strings.HasPrefix(f.Rule, "copy-") {
					if ok, said := r.satisfies(e); !ok {
						t.Errorf("the line that asks for the copies is not said:\n%s", said)
					}
				}
			}
		})
	}
}

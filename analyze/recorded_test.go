package analyze_test

import (
	"archive/zip"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

var update = flag.Bool("update", false, "rewrite the golden files of recorded traces")

// said is what one rule says about a trace; a golden file holds it as JSON.
type said struct {
	Findings []finding.Finding `json:"findings"`
	Checks   []finding.Check   `json:"checks"`
}

const (
	folders  = "detect/*/testdata"
	recorded = ".dptrace.zip"
)

var kindName = regexp.MustCompile(`^(bad|good|nearmiss)\b`)

// TestRecorded lets each rule judge its testdata/CASE.dptrace.zip, which are
// recorded from programs and never typed, and compares with testdata/CASE.golden.
// With -update it rewrites those files: look at the difference before it is
// committed. A rule needs a case whose name begins with bad (it finds it), one
// with good and one with nearmiss (it does not), so that a rule that finds
// nothing, or everything, cannot pass.
func TestRecorded(t *testing.T) {
	var ids []string
	for _, rule := range analyze.Rules {
		ids = append(ids, folderOf(rule.ID))
		t.Run(rule.ID, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(strings.Replace(folders, "*", folderOf(rule.ID), 1), "*"+recorded))
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[string]bool{}
			for _, file := range files {
				name := strings.TrimSuffix(filepath.Base(file), recorded)
				kind := kindName.FindString(name)
				kinds[kind] = true
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := judged(t, rule.ID, file)
					if found := slices.ContainsFunc(s.Findings, sure); found != (kind == "bad") {
						t.Errorf("a case called %s, and found is %v: %+v", kind, found, s)
					}
					compare(t, strings.TrimSuffix(file, recorded)+".golden", s)
				})
			}
			for _, kind := range []string{"bad", "good", "nearmiss"} {
				if !kinds[kind] {
					t.Errorf("no testdata/%s*%s: `make fixtures` records them", kind, recorded)
				}
			}
		})
	}
	all, err := filepath.Glob(folders)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range all {
		if id := filepath.Base(filepath.Dir(folder)); !slices.Contains(ids, id) {
			t.Errorf("%s: no rule of this name in analyze.Rules", folder)
		}
	}
}

// judged is what one rule says about a recorded trace.
func judged(t *testing.T, rule, file string) said {
	result, err := analyze.Run(opened(t, file), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	return said{
		slices.DeleteFunc(append([]finding.Finding{}, result.Findings...), func(f finding.Finding) bool { return f.Rule != rule }),
		slices.DeleteFunc(append([]finding.Check{}, result.Checks...), func(c finding.Check) bool { return c.Rule != rule }),
	}
}

// opened is a recorded trace.
func opened(t testing.TB, file string) *traces.Run {
	t.Helper()
	archive, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { archive.Close() })
	run, err := traces.OpenFS(archive, ".")
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func sure(f finding.Finding) bool { return f.Certainty > finding.Note }

func compare(t *testing.T, file string, s said) {
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

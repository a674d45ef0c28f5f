package detecttest

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

var update = flag.Bool("update", false, "rewrite the golden files of recorded traces")

// Said is what one rule says about a trace; a golden file holds it as JSON.
type Said struct {
	Findings []finding.Finding `json:"findings"`
	Checks   []finding.Check   `json:"checks"`
}

// Judge analyses a run and gives what all rules say.
type Judge func(*traces.Run) ([]finding.Finding, []finding.Check, error)

// Golden runs one rule over every testdata/CASE.dptrace, which is recorded from
// a program and never typed, and compares with testdata/CASE.golden. With
// -update it rewrites those files: look at the difference before it is
// committed. A folder needs a case whose name begins with bad (the rule finds
// it), one with good and one with nearmiss (it does not), so that a detector
// that finds nothing, or everything, cannot pass.
func Golden(t *testing.T, rule string, judge Judge) {
	folders, err := filepath.Glob("testdata/*.dptrace")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, folder := range folders {
		name := strings.TrimSuffix(filepath.Base(folder), ".dptrace")
		t.Run(name, func(t *testing.T) {
			run, err := traces.Open(folder)
			if err != nil {
				t.Fatal(err)
			}
			findings, checks, err := judge(run)
			if err != nil {
				t.Fatal(err)
			}
			said := Said{[]finding.Finding{}, []finding.Check{}}
			for _, f := range findings {
				if f.Rule == rule {
					said.Findings = append(said.Findings, f)
				}
			}
			for _, c := range checks {
				if c.Rule == rule {
					said.Checks = append(said.Checks, c)
				}
			}
			kind := kindOf(name)
			kinds[kind] = true
			if found := sure(said.Findings); found != (kind == "bad") {
				t.Errorf("a case called %s, and found is %v: %+v", kind, found, said)
			}
			compare(t, strings.TrimSuffix(folder, ".dptrace")+".golden", said)
		})
	}
	for _, kind := range []string{"bad", "good", "nearmiss"} {
		if !kinds[kind] {
			t.Errorf("no testdata/%s*.dptrace: `make fixtures` records them", kind)
		}
	}
}

var kindName = regexp.MustCompile(`^(bad|good|nearmiss)\b`)

func kindOf(name string) string { return kindName.FindString(name) }

func sure(findings []finding.Finding) bool {
	for _, f := range findings {
		if f.Certainty > finding.Note {
			return true
		}
	}
	return false
}

func compare(t *testing.T, file string, said Said) {
	got, err := json.MarshalIndent(said, "", "  ")
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

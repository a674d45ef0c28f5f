package analyze_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/finding"
)

func TestPrograms(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			run := detecttest.NewRun(t)
			p.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range p.want {
				loader, rule := 1, key
				if _, err := fmt.Sscanf(key, "%d %s", &loader, &rule); err != nil {
					loader, rule = 1, key
				}
				if got := verdict(r, "rng-duplicate-"+rule, loader); !matches(got, want) {
					t.Errorf("%s: %s, want %s", key, got, want)
				}
			}
			if t.Failed() {
				for _, f := range r.Findings {
					t.Logf("%s %s loader %d: %s\n%v\n%s\n%s", f.Certainty, f.Rule, f.Loader.ID, f.Title, f.Evidence, f.Cost, f.Fix)
				}
			}
		})
	}
}

// verdict is the certainty of the finding, if there is one, else the check; of
// notes both.
func verdict(r *analyze.Result, rule string, loader int) string {
	var out []string
	for _, f := range r.Findings {
		if f.Rule == rule && f.Loader.ID == loader {
			out = append(out, f.Certainty.String())
			if f.Certainty > finding.Note {
				return f.Certainty.String()
			}
		}
	}
	for _, c := range r.Checks {
		if c.Rule == rule && c.Loader == loader && (c.Status != finding.Found || len(out) == 0) {
			out = append(out, string(c.Status)+" "+c.Reason)
		}
	}
	return strings.Join(out, " ")
}

// matches: the first word is the same, and the rest of want is found in got.
func matches(got, want string) bool {
	w, rest, _ := strings.Cut(want, " ")
	g, more, _ := strings.Cut(got, " ")
	if next, reason, ok := strings.Cut(rest, " "); ok && (next == "cannot-tell" || next == "clean") {
		return w == g && strings.HasPrefix(more, next) && strings.Contains(more, reason)
	}
	return w == g && strings.Contains(more, rest)
}

// folderOf a rule is its id in one word, as packages are named.
func folderOf(id string) string { return strings.ReplaceAll(id, "-", "") }

// TestEveryFolderIsListed fails when a folder with a rule is missing in Rules.
func TestEveryFolderIsListed(t *testing.T) {
	listed := map[string]bool{"detecttest": true}
	for _, r := range analyze.Rules {
		listed[folderOf(r.ID)] = true
		if r.Title == "" || len(r.Sources) == 0 || r.Judge == nil {
			t.Errorf("%s: a field is missing", r.ID)
		}
	}
	folders, err := os.ReadDir("detect")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.IsDir() && !listed[f.Name()] {
			t.Errorf("detect/%s: add its Rule to Rules in analyze.go", f.Name())
		}
	}
	for id := range listed {
		if _, err := os.Stat(filepath.Join("detect", id)); err != nil {
			t.Errorf("rule %s has no folder of its name: %v", id, err)
		}
	}
}

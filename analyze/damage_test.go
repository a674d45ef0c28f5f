package analyze_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

// TestDamage: a trace with bytes missing or changed is never called clean by a
// rule that the whole one is not, and gets no finding that the whole one lacks.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 33))
	said := 0
	for _, name := range []string{"seeded apart", "seed + worker", "object, persistent workers", "a loop that draws alike on both ranks (MixUp)", "fixed validation", "ranks with equal worker seeds",
		"ranks that got the same samples", "IterableDataset, its own generator", "one permutation for all workers", "two trials with one seed"} {
		for _, p := range programs {
			if p.name != name {
				continue
			}
			run := NewRun(t)
			p.play(run)
			whole := run.Open(t)
			truth := statuses(t, whole)
			for range 15 {
				dir := damaged(t, r, run.Dir)
				got, err := traces.Open(dir)
				if err != nil {
					continue // said so: nothing to judge
				}
				said++
				for key, status := range statuses(t, got) {
					if strings.HasSuffix(key, "unknown place") { // its row is lost
						key = strings.TrimSuffix(key, "unknown place") + "train.py:88"
					}
					if status == finding.Clean && truth[key] != finding.Clean {
						t.Errorf("%s, damaged: %s is clean, in the whole trace %s: %v", name, key, truth[key], got.Problems)
					}
					if status == finding.Found && truth[key] != finding.Found {
						t.Errorf("%s, damaged: %s is found, in the whole trace %s: %v", name, key, truth[key], got.Problems)
					}
				}
			}
		}
	}
	if said < 100 {
		t.Errorf("only %d damaged traces were judged: the test shows little", said)
	}
}

func statuses(t *testing.T, run *traces.Run) map[string]finding.Status {
	t.Helper()
	result, err := analyze.Run(run, analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	return statusesOf(result)
}

func statusesOf(result *analyze.Result) map[string]finding.Status {
	m := map[string]finding.Status{}
	for _, c := range result.Checks {
		loader := "?"
		for _, l := range result.Timeline.Loaders {
			if l.ID == c.Loader {
				loader = l.At() // IDs shift when a loader is lost
			}
		}
		m[c.Rule+" "+loader] = c.Status
	}
	return m
}

// damaged copies a trace and cuts one of its files, changes a byte in it, or
// takes it away.
func damaged(t *testing.T, r *rand.Rand, from string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run.dptrace")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(dir + "/*/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	var chosen []string
	for _, f := range files { // mostly those that matter
		if strings.Contains(f, "rng_") || strings.Contains(f, "batch_") || strings.Contains(f, "worker") || r.IntN(4) == 0 {
			chosen = append(chosen, f)
		}
	}
	file := chosen[r.IntN(len(chosen))]
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	switch r.IntN(5) {
	case 0:
		b = b[:r.IntN(len(b))]
	case 1:
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return dir
	default:
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

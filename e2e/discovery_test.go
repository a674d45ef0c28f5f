package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shapes is how many ways to hide a generator one run tries.
const shapes = 24

// TestDiscovery hides generators behind random names, containers and packages:
// each must be found, by its name. DPTRACE_SEED repeats a run.
func TestDiscovery(t *testing.T) {
	p := python(t)
	t.Parallel()
	seed := strconv.FormatUint(rand.Uint64N(1_000_000), 10)
	if s := os.Getenv("DPTRACE_SEED"); s != "" {
		seed = s
	}
	t.Logf("DPTRACE_SEED=%s", seed)
	folder := t.TempDir()
	if made := run(t, "discovery", p.Path, "shapes.py", seed, strconv.Itoa(shapes), folder); made.code != 0 {
		t.Fatal(made.tail())
	}
	text, err := os.ReadFile(filepath.Join(folder, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected []struct {
		Line        int
		Name, Shape string
	}
	if err := json.Unmarshal(text, &expected); err != nil || len(expected) != shapes {
		t.Fatalf("%d shapes, %v", len(expected), err)
	}
	recorded, r := record(t, folder, p.Path, "main.py")
	if recorded.code != 0 {
		t.Fatalf("exits %d:\n%s", recorded.code, recorded.tail())
	}
	for _, e := range expected {
		for _, rule := range []string{"rng-duplicate-workers", "rng-duplicate-epochs"} {
			at := "main.py:" + strconv.Itoa(e.Line)
			if !r.names(rule, at, e.Name) {
				t.Errorf("line %d: %s does not name %s: %s", e.Line, rule, e.Name, e.Shape)
			}
			if !r.found(rule, at) {
				t.Errorf("line %d: %s found something, and no check of the line's loader says so: %+v", e.Line, rule, r.Checks)
			}
		}
	}
	if t.Failed() {
		for _, f := range r.Findings {
			t.Log(f.Rule, f.Certainty, f.Loader.At, f.Title)
		}
	}
}

// found reports whether a rule has found something at the loader of a line, and its role is known.
func (r report) found(rule, at string) bool {
	return slices.ContainsFunc(r.Checks, func(c checked) bool {
		return c.Rule == rule && strings.HasSuffix(c.At, at) && c.Role == "train" && c.Status == "found"
	})
}

// names says whether a proven finding about the loader of a line names a generator.
func (r report) names(rule, at, name string) bool {
	for _, f := range r.Findings {
		if f.Rule == rule && f.Certainty == "proven" && strings.HasSuffix(f.Loader.At, at) &&
			strings.Contains(fmt.Sprint(f.Title, f.Evidence), name) {
			return true
		}
	}
	return false
}

package probes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// A folder that declares a probe and is not in List would be built and never run.
func TestListed(t *testing.T) {
	declares := regexp.MustCompile(`(?m)^var Probe = probe\.Probe\{`)
	var listed []string
	for _, p := range List {
		listed = append(listed, p.Name)
		if p.Doc == "" || p.Start == nil || p.Tier == "" {
			t.Errorf("probe %q does not describe itself", p.Name)
		}
	}
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !declares.Match(source) {
			continue
		}
		found++
		if name := filepath.Dir(f); !slices.Contains(listed, name) {
			t.Errorf("probes/%s holds a probe that probes.List does not name", name)
		}
	}
	if found != len(List) {
		t.Errorf("%d folders hold a probe, %d are listed", found, len(List))
	}
}

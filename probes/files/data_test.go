package files

import (
	_ "embed"
	"strings"
	"testing"
)

// The hook has a filter of its own for the files that it sees open; this list is
// for both.
//
//go:embed testdata/paths.txt
var paths string

func TestIsData(t *testing.T) {
	seen := map[string]int{}
	for line := range strings.Lines(paths) {
		want, path, ok := strings.Cut(strings.TrimSpace(line), " ")
		if want == "#" {
			continue
		}
		if seen[want]++; !ok || want != "data" && want != "other" {
			t.Errorf("the line %q", line)
		}
		if got := isData(path); got != (want == "data") {
			t.Errorf("%q: %v, want %s", path, got, want)
		}
	}
	if seen["data"] < 10 || seen["other"] < 20 {
		t.Errorf("the list is cut: %v", seen)
	}
}

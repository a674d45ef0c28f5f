package files

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const hook = "../../shim/python/"

// The hook's own test reads the same paths.
func TestIsData(t *testing.T) {
	text, err := os.ReadFile(hook + "tests/data_files.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		want, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		if got := isData(path); got != (want == "data") {
			t.Errorf("%q: %v, want %s", path, got, want)
		}
		seen[want]++
	}
	if seen["data"] < 5 || seen["none"] < 5 || len(seen) != 2 {
		t.Errorf("the test looks in the wrong place: %v", seen)
	}
}

// What the kernel's word leaves out and what the hook's does must be the same.
func TestListsAreTheHooks(t *testing.T) {
	text, err := os.ReadFile(hook + "dptrace_hook/read/open_files.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, ours := range map[string][]string{"SYSTEM": system, "INSIDE": inside, "ENDS": ends, "VERSIONED": versioned, "SHARED": shared} {
		list := regexp.MustCompile(`(?s)\n` + name + ` = \((.*?)\)`).FindSubmatch(text)
		if list == nil {
			t.Errorf("the hook has no %s", name)
			continue
		}
		var theirs []string
		for _, quoted := range regexp.MustCompile(`"(.*?)"`).FindAllSubmatch(list[1], -1) {
			theirs = append(theirs, string(quoted[1]))
		}
		if !slices.Equal(ours, theirs) {
			t.Errorf("%s of the hook is\n%q, not\n%q", name, theirs, ours)
		}
	}
}

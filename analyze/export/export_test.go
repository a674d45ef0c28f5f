package export

import (
	"os"
	"testing"
)

// TestEveryFolderIsListed fails when a folder with an exporter is missing in List.
func TestEveryFolderIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, e := range List {
		if e.Name == "" || e.Doc == "" || e.Long == "" || e.Suffix == "" || e.Open == "" || e.Write == nil {
			t.Errorf("%q: a field is missing", e.Name)
		}
		if listed[e.Name] {
			t.Errorf("%s is listed twice", e.Name)
		}
		listed[e.Name] = true
		if info, err := os.Stat(e.Name); err != nil || !info.IsDir() {
			t.Errorf("exporter %s has no folder of its name", e.Name)
		}
	}
	for _, s := range Senders {
		listed[s.Name] = true
		if info, err := os.Stat(s.Name); err != nil || !info.IsDir() || s.Discard == nil {
			t.Errorf("sender %s has no folder of its name, or a field is missing", s.Name)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !listed[e.Name()] {
			t.Errorf("%s/: add it to List or Senders in export.go", e.Name())
		}
	}
}

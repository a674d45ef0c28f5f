package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dptrace/dptrace/docs"
)

// TestPages runs the programs of docs/rules: the failing one has what its page
// is about, proven, and the fixed one has nothing.
func TestPages(t *testing.T) {
	p := python(t)
	for _, id := range docs.Rules() {
		page, _ := docs.Rule(id)
		for _, e := range docs.Examples(page) {
			t.Run(id+"_"+e.Kind, func(t *testing.T) {
				t.Parallel()
				folder := t.TempDir()
				if err := os.WriteFile(filepath.Join(folder, "program.py"), []byte(e.Code), 0o600); err != nil {
					t.Fatal(err)
				}
				program, r := record(t, folder, p.Path, "program.py")
				if program.code != 0 {
					t.Fatalf("exits %d:\n%s", program.code, program.tail())
				}
				proven := false
				for _, f := range r.Findings {
					proven = proven || f.Rule == id && f.Certainty == "proven"
				}
				if want := e.Kind == "failing"; proven != want {
					_, near := r.satisfies(expectation{rule: id})
					t.Errorf("proven: %v, want %v; there is\n%s", proven, want, near)
				}
				if e.Kind == "fixed" {
					for _, alarm := range r.alarms(nil) {
						t.Errorf("false alarm: %s", alarm)
					}
				}
			})
		}
	}
}

package analyze_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
)

func TestShow(t *testing.T) {
	for _, p := range programs {
		if os.Getenv("SHOW") == "" || !strings.Contains(p.name, os.Getenv("SHOW")) {
			continue
		}
		run := detecttest.NewRun(t)
		p.play(run)
		r, err := analyze.Run(run.Open(t))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("=====", p.name)
		for _, f := range r.Findings {
			fmt.Printf("%s %s %v: %s\n", f.Certainty, f.Rule, f.Loader, f.Title)
			for _, e := range f.Evidence {
				fmt.Printf("  - %s %v\n", e.Text, e.Refs)
			}
			fmt.Printf("  COST %s\n  FIX\n%s\n  VERIFY %s\n  NOTABUG %s\n", f.Cost, f.Fix, f.Verify, f.NotABugIf)
		}
		for _, c := range r.Checks {
			fmt.Printf("  %v\n", c)
		}
	}
}

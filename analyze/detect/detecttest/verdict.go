package detecttest

import (
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze/finding"
)

// Verdict compares what a rule says about loader 1: want is the certainty of its
// finding, or the status of its check where it finds nothing. says are words
// that must be in what it says; those behind "not:" must not.
func Verdict(t *testing.T, findings []finding.Finding, checks []finding.Check, rule, want string, says []string) {
	t.Helper()
	verdict := ""
	var text []string
	for _, f := range findings {
		if f.Rule != rule || f.Loader.ID != 1 {
			continue
		}
		verdict = f.Certainty.String()
		text = append(text, f.Title, f.Cost, f.Fix, f.NotABugIf)
		for _, e := range f.Evidence {
			text = append(text, e.Text)
		}
		if len(f.Evidence) == 0 || len(f.Evidence[0].Refs) == 0 {
			t.Error("the first line of evidence names no row of the trace")
		}
	}
	for _, k := range checks {
		if k.Rule != rule || k.Loader != 1 {
			continue
		}
		text = append(text, k.Reason)
		if verdict == "" {
			verdict = string(k.Status)
		} else if k.Status != finding.Found && (verdict != "note" || k.Status != finding.CannotTell) { // what else was not seen may outweigh a note
			t.Errorf("%s, but the check says %s", verdict, k.Status)
		}
	}
	if verdict != want {
		t.Errorf("%s, want %s", verdict, want)
	}
	Says(t, text, says)
}

// Says compares what was said with words that must be in it, and those behind
// "not:" that must not.
func Says(t *testing.T, text, says []string) {
	t.Helper()
	all := strings.Join(text, "\n")
	for _, words := range says {
		plain, not := strings.CutPrefix(words, "not:")
		if not == strings.Contains(all, plain) {
			t.Errorf("says %q: %v", plain, not)
		}
	}
	if t.Failed() || testing.Verbose() {
		t.Log(all)
	}
}

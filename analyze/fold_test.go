package analyze

import (
	"testing"

	"github.com/dptrace/dptrace/analyze/finding"
)

func TestFold(t *testing.T) {
	draws := func(loader int) finding.Finding {
		return finding.Finding{Rule: "rng-duplicate-ranks", Certainty: finding.Proven, Loader: finding.Loader{ID: loader}, Evidence: []finding.Evidence{{Text: "the same numbers"}}}
	}
	shared := func(loader int, c finding.Certainty) finding.Finding {
		return finding.Finding{Rule: "shard-duplicate-ranks", Certainty: c, Loader: finding.Loader{ID: loader}}
	}
	for _, c := range []struct {
		name     string
		findings []finding.Finding
		left     int
		status   finding.Status
	}{
		{"one bug", []finding.Finding{draws(1), shared(1, finding.Proven)}, 1, finding.CannotTell},
		{"another loader's", []finding.Finding{draws(1), shared(2, finding.Proven)}, 2, finding.Found},
		{"samples in common are only a note", []finding.Finding{draws(1), shared(1, finding.Note)}, 2, finding.Found},
	} {
		r := Result{Findings: c.findings, Checks: []finding.Check{{Rule: "rng-duplicate-ranks", Loader: 1, Status: finding.Found}}}
		r.fold()
		if len(r.Findings) != c.left || r.Checks[0].Status != c.status {
			t.Errorf("%s: %d findings, %s", c.name, len(r.Findings), r.Checks[0].Status)
		}
		if last := r.Findings[len(r.Findings)-1]; c.left == 1 && (last.Rule != "shard-duplicate-ranks" || len(last.Evidence) != 1) {
			t.Errorf("%s: %+v", c.name, last)
		}
	}
}

package rngduplicateworkers_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/rngduplicateworkers"
	"github.com/dptrace/dptrace/analyze/finding"
)

// TestTwins: two generators of one worker that agree are a note, and a note is not
// clean, nor is the rule without an object because there is one worker.
func TestTwins(t *testing.T) {
	for _, n := range []int{0, 1, 2} {
		r := detecttest.NewRun(t)
		r.Process(-1, 0).Open(detecttest.Loader{Workers: n, Slots: []detecttest.Slot{{Path: "dataset.image", Role: "dataset"}, {Path: "dataset.mask", Role: "dataset"}},
			Start: func(_, worker int) []*detecttest.Gen {
				return []*detecttest.Gen{detecttest.PCG(uint64(worker + 2)), detecttest.PCG(uint64(worker + 2))}
			},
			Fetch: func(_, _, _ int, g []*detecttest.Gen) {
				g[0].Draw(9)
				g[1].Draw(9)
			}}).Pass(detecttest.Train)
		r.Seal()
		result, err := analyze.Run(r.Open(t), []detect.Rule{rngduplicateworkers.Rule})
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Findings) != 1 || result.Findings[0].Certainty != finding.Note {
			t.Fatalf("%d workers: %+v", n, result.Findings)
		}
		want := finding.Check{Rule: rngduplicateworkers.Rule.ID, Loader: 1, At: "train.py:88", Role: "train", Status: finding.Found,
			Reason: "no more than a note on generators that agree in each worker"}
		if result.Checks[0] != want {
			t.Errorf("%d workers: %+v, want %+v", n, result.Checks[0], want)
		}
	}
}

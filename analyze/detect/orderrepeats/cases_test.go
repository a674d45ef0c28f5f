package orderrepeats_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/orderrepeats"
	"github.com/dptrace/dptrace/traces"
)

func again(int) []int64 { return Shuffled(96, 5) }

func fixed(_ int, index int64) What { return Numbered(index) }

func renewed(pass int, index int64) What { return Numbered(index + 1000*int64(pass)) }

// cases: one order in all passes, and what they contain. Orders alone are in
// analyze/orders.
var cases = []struct {
	name  string
	play  Walk
	draws bool // fetches draw random numbers
	want  string
	says  []string
}{
	{"the same data", Walk{Passes: 3, Order: again, Contains: fixed}, false, "proven", nil},
	{"the same data, a loader for each pass", Walk{Passes: 3, Anew: true, Order: again, Contains: fixed}, false, "proven", nil},
	{"augmented, a loader for each pass", Walk{Passes: 3, Anew: true, Order: again, Contains: renewed}, true, "likely", []string{"other data each time"}},
	{"rollouts: other data in each pass", Walk{Passes: 3, Anew: true, Order: again, Contains: renewed}, false, "cannot-tell", []string{"what is at an index changes"}},
	{"a buffer that is filled anew", Walk{Passes: 3, Dataset: 1, Order: again, Contains: renewed}, false, "cannot-tell", []string{"what is at an index changes"}},
	{"two rollouts, used twice each", Walk{Passes: 4, Anew: true, Order: again, Contains: func(pass int, index int64) What { return renewed(pass/2, index) }}, false, "likely", []string{"Two of 4 passes", "Passes 0 and 1", "Passes 2 and 3"}},
	{"augmented", Walk{Passes: 3, Order: again, Contains: renewed}, true, "proven", nil},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			p := run.Process(-1, 0)
			if c.draws {
				run.Add(p.Proc, traces.RngState{When: "after"})
			}
			p.Walk(c.play)
			run.Seal()
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, orderrepeats.Rule.ID, c.want, c.says)
		})
	}
}

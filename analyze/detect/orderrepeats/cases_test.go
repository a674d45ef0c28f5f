package orderrepeats_test

import (
	"fmt"
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

// songs of two workers, in an order that a seed makes.
func songs(seed uint64, version int) (workers [][]Sample) {
	order := Shuffled(96, seed)
	for w := range 2 {
		var list []Sample
		for i, n := range order[48*w : 48*w+48] {
			list = append(list, Sample{Index: int64(i), Content: fmt.Sprint("song ", n, version)})
		}
		workers = append(workers, list)
	}
	return workers
}

// TestStreams: of a stream whose code shuffles, the order of what came is compared.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name    string
		shuffle string
		pass    func(pass int) [][]Sample
		how     Pass
		draws   bool
		want    string
		says    []string
	}{
		{"one seed for all passes", "yes", func(int) [][]Sample { return songs(1, 0) }, Train, false, "likely",
			[]string{"2 of 3 passes go through the stream in the order of an earlier one, although the code of Points names a shuffle", "96 samples were compared", "self.epoch", "shuffled once"}},
		{"a seed for each", "yes", func(pass int) [][]Sample { return songs(uint64(pass), 0) }, Train, false, "clean", []string{"3 pairs of a stream that shuffles"}},
		{"no shuffle is named", "", func(int) [][]Sample { return songs(1, 0) }, Train, false, "not-applicable", []string{"no sampler"}},
		{"augmented", "yes", func(pass int) [][]Sample { return songs(1, pass) }, Train, true, "cannot-tell", []string{"may be augmented"}},
		{"augmented, by what is not seen", "yes", func(pass int) [][]Sample { return songs(1, pass) }, Train, false, "cannot-tell", []string{"may be augmented"}},
		{"evaluated", "yes", func(int) [][]Sample { return songs(1, 0) }, Eval, false, "not-applicable", nil},
		{"a few samples", "yes", func(int) [][]Sample { return [][]Sample{songs(1, 0)[0][:9]} }, Train, false, "cannot-tell", []string{"no two passes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			p := run.Process(-1, 0)
			s := p.Serve(Serve{Iterable: true, Shuffle: c.shuffle, Length: -1, Workers: 2})
			for pass := range 3 {
				s.Stream(c.how, c.pass(pass)...)
			}
			if c.draws {
				for n := range uint32(12) {
					run.Add(n, traces.RngState{When: "after"})
				}
			}
			run.Seal()
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, orderrepeats.Rule.ID, c.want, c.says)
		})
	}
}

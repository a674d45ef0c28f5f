package datasetcopiedperworker_test

import (
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/datasetcopiedperworker"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/finding"
)

const (
	gib = 1 << 30
	mb  = 1_000_000
	ms  = 1_000_000 // in ns
)

func in(limit int64, crews ...Crew) func(*Run) {
	return func(r *Run) {
		r.Host(64 * gib)
		if limit > 0 {
			r.Limit("cgroup", "/job", limit, limit/2)
		}
		p := r.Process(-1, 0)
		for _, c := range crews {
			p.Work(c)
		}
		r.Seal()
	}
}

// cases: want is the certainty or the status of loader 1, and words that must be
// in what is said; those behind "not:" must not.
var cases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	{"spawn, large", in(8*gib, Crew{Workers: 4, Passes: 1, Method: "spawn", Pickled: 50 * mb, PickleNS: 200 * ms, FirstNS: 3000 * ms}),
		"proven", []string{"spawn pickles 50.0 MB into each of 4 workers", "until the first batch", "200,000,000 bytes for 4 workers", "2.3 % of the 8.59 GB", "persistent_workers=True", "not:in each of"}},
	{"forkserver, slow, in each pass", in(64*gib, Crew{Workers: 2, Passes: 3, Method: "forkserver", Pickled: 20 * mb, PickleNS: 600 * ms}),
		"proven", []string{"forkserver pickles 20.0 MB into each of 2 workers, in each of 3 passes", "1.2 s of pickling"}},
	{"persistent workers, large", in(8*gib, Crew{Workers: 4, Passes: 3, Persistent: true, Method: "spawn", Pickled: 50 * mb, PickleNS: 200 * ms}),
		"proven", []string{", once", "not:persistent_workers=True"}},
	{"persistent workers, only slow", in(64*gib, Crew{Workers: 2, Passes: 3, Persistent: true, Method: "spawn", Pickled: 20 * mb, PickleNS: 600 * ms}),
		"note", []string{"sent the dataset once"}},
	{"beside a loader that forks", in(8*gib, Crew{Workers: 4, Passes: 1, Method: "spawn", Pickled: 50 * mb, PickleNS: 200 * ms, FirstNS: 3000 * ms, New: func(int, int, int) int { return 20000 }},
		Crew{Workers: 2, Passes: 1, Line: 120, FirstNS: 60 * ms, New: func(int, int, int) int { return 3000 }}),
		"proven", []string{"the forked workers of loader 2 took 0.1 s", "A worker had 81.9 MB of memory to itself; a forked one of loader 2 12.3 MB"}},
	{"ranks of one host together", func(r *Run) {
		r.Host(64 * gib)
		r.Limit("cgroup", "/job", 10*gib, 0)
		for rank := range 2 {
			r.Process(rank, 2).Work(Crew{Workers: 2, Passes: 1, Method: "spawn", Pickled: 30 * mb, PickleNS: 100 * ms})
		}
		r.Seal()
	}, "proven", []string{"each of 4 workers", "of rank 1"}},
	{"cut, but counted", func(r *Run) {
		r.Host(gib)
		r.Process(-1, 0).Work(Crew{Workers: 4, Passes: 1, Method: "spawn", Pickled: 50 * mb, PickleNS: 200 * ms})
	}, "proven", nil},

	{"a kilobyte, and a __getstate__ that waits", in(8*gib, Crew{Workers: 2, Passes: 3, Method: "spawn", Pickled: 1000, PickleNS: 600 * ms, PickleCPUNS: ms}),
		"clean", []string{"2 KB pickled for 2 workers in 1.2 s, most of which is no copying"}},
	{"megabytes, and a __getstate__ that computes", in(64*gib, Crew{Workers: 4, Passes: 3, Method: "spawn", Pickled: 2 * mb, PickleNS: 5000 * ms, PickleCPUNS: 5000 * ms}),
		"likely", []string{"code of the program's own that pickling calls"}},
	{"megabytes, and a __getstate__ that waits", in(64*gib, Crew{Workers: 4, Passes: 3, Method: "spawn", Pickled: 8 * mb, PickleNS: 5000 * ms, PickleCPUNS: 300 * ms}),
		"likely", []string{"or waits in it"}},
	{"objects that pickle slowly", in(64*gib, Crew{Workers: 4, Passes: 3, Method: "spawn", Pickled: 8 * mb, PickleNS: 600 * ms, PickleCPUNS: 590 * ms}), "proven", nil},
	{"too much for the memory, whatever __getstate__ does", in(gib, Crew{Workers: 4, Passes: 3, Method: "spawn", Pickled: 8 * mb, PickleNS: 5000 * ms, PickleCPUNS: 60 * ms}), "proven", nil},
	{"a kilobyte where there is next to no memory", in(mb, Crew{Workers: 2, Passes: 3, Method: "spawn", Pickled: 20_000, PickleNS: 6 * ms}), "clean", nil},

	{"small", in(8*gib, Crew{Workers: 4, Passes: 3, Method: "spawn", Pickled: 1 * mb, PickleNS: 5 * ms}), "clean", []string{"4.0 MB pickled for 4 workers in 0.0 s"}},
	{"fork", in(gib, Crew{Workers: 4, Passes: 1}), "not-applicable", []string{"forked workers inherit the dataset"}},
	{"no workers", in(gib, Crew{Passes: 1}), "not-applicable", []string{"no workers"}},

	{"an older trace", in(0, Crew{Workers: 4, Passes: 1, Method: "spawn"}), "cannot-tell", []string{"what was pickled under spawn is not in the trace"}},
	{"the limit is not known", func(r *Run) {
		r.Process(-1, 0).Work(Crew{Workers: 4, Passes: 1, Method: "spawn", Pickled: 50 * mb, PickleNS: 20 * ms})
		r.Seal()
	}, "cannot-tell", []string{"how much memory there is"}},
	{"cut", func(r *Run) {
		r.Host(64 * gib)
		r.Process(-1, 0).Work(Crew{Workers: 4, Passes: 1, Method: "spawn", Pickled: mb})
	}, "cannot-tell", []string{"cut"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			verdict := ""
			var text []string
			for _, f := range r.Findings {
				if f.Rule == datasetcopiedperworker.Rule.ID && f.Loader.ID == 1 {
					verdict = f.Certainty.String()
					text = append(text, f.Title, f.Cost, f.Fix, f.NotABugIf)
					for _, e := range f.Evidence {
						text = append(text, e.Text)
						if len(e.Refs) == 0 && strings.Contains(e.Text, "bytes") {
							t.Errorf("no row of the trace: %s", e.Text)
						}
					}
				}
			}
			for _, k := range r.Checks {
				if k.Rule == datasetcopiedperworker.Rule.ID && k.Loader == 1 {
					text = append(text, k.Reason)
					if verdict == "" {
						verdict = string(k.Status)
					} else if k.Status != finding.Found {
						t.Errorf("%s, but the check says %s", verdict, k.Status)
					}
				}
			}
			if verdict != c.want {
				t.Errorf("%s, want %s", verdict, c.want)
			}
			Says(t, text, c.says)
		})
	}
}

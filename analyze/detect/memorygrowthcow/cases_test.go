package memorygrowthcow_test

import (
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/memorygrowthcow"
	"github.com/dptrace/dptrace/analyze/finding"
)

const (
	gib  = 1 << 30
	page = 4096
)

var (
	records = Held{Path: "dataset.records", Class: "dict", Items: 1_000_000, Sampled: 16384, Blocks: 40}
	paths   = Held{Path: "dataset.paths", Class: "list", Items: 400_000, Sampled: 4200, Blocks: 40}
	jpegs   = Held{Path: "dataset.images", Class: "list", Items: 10_000, Sampled: 5000, Blocks: 500}
)

// upTo grows by so many pages a batch, up to most.
func upTo(perBatch, most int) func(pass, worker, batches int) int {
	return func(_, _, batches int) int { return min(perBatch*batches, most) }
}

// in plays crews in one process, on a machine of 64 GiB in a control group.
func in(limit int64, crews ...Crew) func(*Run) {
	return func(r *Run) {
		r.Host(64 * gib)
		if limit > 0 {
			r.Limit("cgroup", "/job", limit, limit/2)
			r.Limit("host", "", 64*gib, 9*gib)
		}
		p := r.Process(-1, 0)
		for _, c := range crews {
			p.Work(c)
		}
		r.Seal()
	}
}

// onRanks plays a crew on each of two ranks.
func onRanks(limit int64, c Crew) func(*Run) {
	return func(r *Run) {
		r.Host(64 * gib)
		r.Limit("cgroup", "/job", limit, 0)
		for rank := range 2 {
			r.Process(rank, 2).Work(c)
		}
		r.Seal()
	}
}

// cases: want is the certainty or the status of loader 1, and words that must be
// in the title, an evidence, the cost or the reason; those behind "not:" must not.
var cases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	// What is found.
	{"counted by the kernel", in(2*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000), Other: upTo(8000, 8000)}),
		"proven", []string{"2 workers copy dataset.records", "81.9 MB in each, 164 MB in all", "7.6 % of the 2.15 GB that the control group /job may use", "32.8 MB per worker of other memory", "kernel", "not:in each of"}},
	{"the kernel saw who wrote", in(2*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000), Written: map[string]uint64{
		"/home/me/data.py:16 Photos.__getitem__.<locals>.<listcomp>\n/home/me/data.py:16 Photos.__getitem__": 60,
		"/venv/lib/python3.11/site-packages/torch/storage.py:5 f\n/home/me/data.py:17 Photos.__getitem__":    20,
		"/home/me/data.py:40 rare":                             1,
		"/tmp/s/hook/dptrace_hook/read/sample.py:3 read":       2,
		"/usr/lib/python3.11/threading.py:898 Thread.__init__": 4,
		"": 3,
	}}), "proven", []string{"Of 180 of these faults that were looked at, Python was executing: 120 at /home/me/data.py:16 (Photos.__getitem__) and " +
		"40 at /home/me/data.py:17 (Photos.__getitem__); 4 were dptrace's own hook's.", "not:rare"}},
	{"who wrote, seen too seldom", in(2*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000),
		Written: map[string]uint64{"/home/me/data.py:16 Photos.__getitem__": 3}}), "proven", []string{"not:executing"}},
	{"in each of three passes", in(2*gib, Crew{Workers: 2, Passes: 3, Held: []Held{paths}, Kernel: true, Copied: upTo(6000, 20000)}),
		"proven", []string{"in each of 3 passes", ".encode()"}},
	{"persistent workers", in(2*gib, Crew{Workers: 2, Passes: 5, Persistent: true, Held: []Held{records}, Kernel: true, Copied: upTo(2000, 20000)}),
		"proven", []string{"in passes 0 to 4", "32.8 MB after pass 0", "81.9 MB after pass 4", "not:in each of"}},
	{"two workers and ranks of one host together", onRanks(2*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Kernel: true, Copied: upTo(5000, 12000)}),
		"proven", []string{"4 workers", "on ranks 0 and 1", "on rank 1"}},
	{"a loader that only evaluates", in(2*gib, Crew{Workers: 2, Eval: true, Passes: 1, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000)}), "proven", nil},
	{"two loaders of one dataset", in(2*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000)},
		Crew{Workers: 2, Passes: 1, Line: 99, Eval: true, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000)}), "proven", []string{"164 MB in all"}},
	{"seen by the workers: more than there was", in(2*gib, Crew{Workers: 4, Passes: 1, Held: []Held{records}, Present: 20480, Hook: true, Copied: upTo(6000, 20000)}),
		"proven", []string{"pagemap", "are copies", "not:kernel counted"}},
	{"seen by the workers, where the copies beyond doubt are below the threshold", in(2*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Present: 20480, Hook: true, Copied: upTo(6000, 20000)}),
		"likely", []string{"to themselves"}},
	{"the kernel's counts are taken before the workers'", in(2*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Hook: true, Kernel: true, Copied: upTo(6000, 20000)}),
		"proven", []string{"the kernel counted"}},
	{"one worker by pagemap: the main process may have let go", in(1*gib, Crew{Workers: 1, Passes: 1, Held: []Held{records}, Hook: true, Copied: upTo(6000, 20000)}),
		"likely", []string{"let go of"}},
	{"so far too little, but persistent and growing", in(2*gib, Crew{Workers: 2, Passes: 2, Persistent: true, Held: []Held{records}, Kernel: true, Copied: upTo(650, 20000)}),
		"likely", []string{"are copying", "when they are through", "still growing"}},
	{"broken off early", in(2*gib, Crew{Workers: 2, Passes: 1, Batches: 200, Break: 6, Held: []Held{paths}, Kernel: true, Copied: upTo(1000, 20000)}),
		"likely", []string{"are copying"}},
	{"unsealed: what was counted stands", func(r *Run) {
		r.Host(2 * gib)
		r.Process(-1, 0).Work(Crew{Workers: 2, Passes: 1, Cut: true, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000)})
	}, "proven", []string{"the 2.15 GB of this machine"}},
	{"the worker forked itself: what was counted before stands", in(2*gib, Crew{Workers: 2, Passes: 1, Forks: true, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000)}), "proven", nil},
	{"mapped where was found out at the end", in(2*gib, Crew{Workers: 2, Passes: 1, Unclear: true, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000)}),
		"proven", []string{"81.9 MB in each"}},
	{"two containers", in(2*gib, Crew{Workers: 2, Passes: 1, Held: []Held{paths, records}, Kernel: true, Copied: upTo(8000, 30000)}),
		"proven", []string{"dataset.paths and dataset.records", "# in the same way: dataset.records"}},
	{"the main process copies as well", in(2*gib, Crew{Workers: 2, Passes: 1, Parent: 30000, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000)}),
		"proven", []string{"164 MB in all", "The main process itself wrote to 123 MB"}},
	{"much that has no name", in(2*gib, Crew{Workers: 2, Passes: 1, Batches: 12, Held: []Held{paths}, Kernel: true, Other: upTo(10000, 80000)}),
		"likely", []string{"could not name", "328 MB each"}},
	{"below 5 %", in(8*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000)}),
		"note", []string{"164 MB of dataset.records", "1.9 % of the memory there is"}},
	{"below 5 %, by the workers", in(8*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Hook: true, Copied: upTo(6000, 20000)}), "note", nil},

	// What is silent.
	{"arrays: no container", in(1*gib, Crew{Workers: 4, Passes: 2, Kernel: true, Other: upTo(21000, 21000)}),
		"clean", []string{"no container of 1,000 Python objects", "344 MB of what else they inherited"}},
	{"arrays, without the kernel", in(1*gib, Crew{Workers: 4, Passes: 2, Hook: true}), "clean", []string{"no container"}},
	{"what import torch leaves, beside a small container", in(1*gib, Crew{Workers: 4, Passes: 2, Kernel: true, Copied: upTo(2000, 2000), Other: upTo(21000, 21000),
		Held: []Held{{Path: "dataset.classes", Class: "list", Items: 1000, Sampled: 1000, Blocks: 4}}}), "clean", []string{"4 workers copied 32.8 MB"}},
	{"one run of the garbage collector over much", in(1*gib, Crew{Workers: 2, Passes: 1, Batches: 8, Kernel: true, Other: upTo(60000, 60000)}), "clean", nil},
	{"the garbage collector, twice, after large imports", in(1*gib, Crew{Workers: 2, Passes: 1, Batches: 12, Kernel: true, Other: func(_, _, batches int) int {
		return 2000*min(batches, 4) + 35000*min(batches/4, 2)
	}}), "clean", nil},
	{"a cache that grows", in(1*gib, Crew{Workers: 2, Passes: 2, Batches: 8, Held: []Held{records}, Kernel: true, New: upTo(20000, 1e6)}), "clean", []string{"copied 0 KB"}},
	{"a cache that grows in the containers' blocks, by the workers", in(1*gib, Crew{Workers: 2, Passes: 2, Batches: 8, Held: []Held{records}, Hook: true, New: upTo(20000, 1e6)}), "clean", nil},
	{"the main process alone copies", in(1*gib, Crew{Workers: 2, Passes: 2, Held: []Held{records}, Kernel: true, Other: upTo(700, 700), Parent: 300000}), "clean", nil},
	{"images as bytes: a page of each is copied, the rest never", in(4*gib, Crew{Workers: 2, Passes: 3, Persistent: true, Batches: 4, Held: []Held{jpegs}, Kernel: true, Copied: upTo(800, 10000)}),
		"note", []string{"not:likely"}},
	{"a pass to its end: the next workers come no further", in(8*gib, Crew{Workers: 2, Passes: 2, Held: []Held{records}, Kernel: true, Copied: upTo(4000, 1e6)}), "note", nil},
	{"spawn", in(1*gib, Crew{Workers: 2, Passes: 1, Method: "spawn", Held: []Held{records}, New: upTo(50000, 50000)}), "not-applicable", []string{"inherit nothing under spawn"}},
	{"forkserver", in(1*gib, Crew{Workers: 2, Passes: 1, Method: "forkserver", Kernel: true, Other: upTo(5000, 5000)}), "not-applicable", []string{"inherit nothing under forkserver"}},
	{"no workers", in(1*gib, Crew{Passes: 1}), "not-applicable", []string{"no workers"}},
	{"objects of another loader's dataset", in(1*gib,
		Crew{Workers: 2, Passes: 1, Line: 12, Held: nil, Kernel: true, Copied: upTo(6000, 12000)},
		Crew{Workers: 2, Passes: 1, Line: 90, Held: []Held{records}, Kernel: true}), "clean", nil},

	// What cannot be told.
	{"an older trace", func(r *Run) {
		r.Process(-1, 0).Work(Crew{Workers: 2, Passes: 1})
		r.Seal()
	}, "cannot-tell", []string{"did not look at what workers inherit"}},
	{"the limit is not known", func(r *Run) {
		r.Limit("cgroup", "/job", 0, 5)
		r.Process(-1, 0).Work(Crew{Workers: 2, Passes: 1, Held: []Held{records}, Kernel: true, Copied: upTo(6000, 20000)})
		r.Seal()
	}, "note cannot-tell", []string{"164 MB were copied, but how much memory there is"}},
	{"no pagemap", in(1*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}}), "cannot-tell", []string{"2 of 2 workers could not look"}},
	{"no last counts", in(64*gib, Crew{Workers: 2, Passes: 1, Cut: true, Held: []Held{records}, Kernel: true, Copied: upTo(100, 200)}), "cannot-tell", []string{"last counts"}},
	{"forked itself before it copied", in(1*gib, Crew{Workers: 2, Passes: 1, Forks: true, Held: []Held{records}, Kernel: true, Copied: upTo(100, 200)}), "cannot-tell", []string{"forked children"}},
	{"much became private that nobody can name", in(1*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Hook: true, Smaps: upTo(50000, 50000)}), "cannot-tell", []string{"smaps_rollup"}},
	{"records were lost", func(r *Run) {
		in(1*gib, Crew{Workers: 2, Passes: 1, Held: []Held{records}, Kernel: true})(r)
		r.Lost("kernel", "cow", 3)
	}, "cannot-tell", []string{"records were lost"}},
	{"cut", func(r *Run) {
		r.Host(gib)
		r.Limit("host", "", gib, 0)
		r.Process(-1, 0).Work(Crew{Workers: 2, Passes: 1, Held: []Held{records}, Kernel: true})
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
			var verdict, text []string
			for _, f := range r.Findings {
				if f.Rule == memorygrowthcow.Rule.ID && f.Loader.ID == 1 {
					verdict = append(verdict, f.Certainty.String())
					text = append(text, f.Certainty.String(), f.Title, f.Cost, f.Fix, f.Proof)
					for _, e := range f.Evidence {
						text = append(text, e.Text)
					}
				}
			}
			for _, k := range r.Checks {
				if k.Rule == memorygrowthcow.Rule.ID && k.Loader == 1 {
					text = append(text, k.Reason)
					if k.Status == finding.CannotTell || len(verdict) == 0 {
						verdict = append(verdict, string(k.Status))
					}
				}
			}
			if got := strings.Join(verdict, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			Says(t, text, c.says)
		})
	}
}

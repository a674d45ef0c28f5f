package memorygrowthcow_test

import (
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/memorygrowthcow"
)

// forks plays families of one process, in a control group.
func forks(limit int64, all ...Fork) func(*Run) {
	return func(r *Run) {
		r.Host(64 * gib)
		r.Limit("cgroup", "/job", limit, 0)
		p := r.Process(-1, 0)
		for _, f := range all {
			p.Fork(f)
		}
		r.Seal()
	}
}

var given = Held{Path: "args[0].rows", Class: "list", Items: 400_000, Sampled: 12500, Blocks: 40}

// forkCases: want is the certainties and the status of what belongs to no loader,
// "" that nothing is said; and words as in cases.
var forkCases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	// What is found.
	{"by themselves", forks(2*gib, Fork{Target: "__main__.train", Held: []Held{given}, Processes: 3, Copied: 15000}),
		"likely found", []string{"3 processes forked to run train have 184 MB of args[0].rows to themselves, 61.4 MB each",
			"61.4 MB per process × 3 processes = 184 MB, 8.6 % of the 2.15 GB", "still held the same objects", "at most 83.9 MB", "self.rows", "not:dataset"}},
	{"by the kernel", forks(2*gib, Fork{Target: "__main__.train", Held: []Held{given}, Processes: 3, Copied: 15000, Kernel: true}),
		"likely found", []string{"3 processes forked to run train copied 184 MB of args[0].rows", "the kernel counted", "not:pagemap"}},
	{"one process", forks(1*gib, Fork{Target: "jobs.index", Held: []Held{given}, Processes: 1, Copied: 19000}),
		"likely found", []string{"1 process forked to run jobs.index has 77.8 MB of args[0].rows to itself"}},
	{"each a shard that the parent keeps", forks(2*gib, Fork{Target: "__main__.train", Held: []Held{given}, Own: true, Processes: 3, Copied: 15000}),
		"likely found", []string{"184 MB of args[0].rows to themselves", "not:more containers"}},
	{"killed, after it has looked", forks(2*gib, Fork{Target: "__main__.train", Held: []Held{given}, Processes: 3, Killed: 2, Copied: 19000}),
		"likely found", []string{"38.9 MB to 77.8 MB each"}},
	{"below 5 %", forks(8*gib, Fork{Target: "__main__.train", Held: []Held{given}, Processes: 3, Copied: 15000}), "note found", nil},
	{"two kinds of work", forks(1*gib, Fork{Target: "__main__.a", Held: []Held{given}, Processes: 2, Copied: 15000},
		Fork{Target: "__main__.b", Held: []Held{given}, Processes: 2, Copied: 15000}), "likely likely found", []string{"run a", "run b"}},
	{"of three, two of whose containers are held", forks(1*gib, Fork{Target: "__main__.train", Held: []Held{given}, Own: true, Processes: 3, Let: 1, Copied: 15000}),
		"likely found", []string{"have 123 MB of"}},

	{"one after the other", forks(1*gib, Fork{Target: "__main__.train", Held: []Held{given}, OneByOne: true, Processes: 9, Copied: 15000}),
		"likely found", []string{"1 process forked to run train has 61.4 MB of args[0].rows to itself", "9 processes were forked for this; the numbers are"}},

	// What is silent.
	{"one after the other, each below 5 %", forks(1*gib, Fork{Target: "__main__.train", Held: []Held{given}, OneByOne: true, Processes: 9, Copied: 6000}), "note found", nil},
	{"the parent lets go", forks(1*gib, Fork{Target: "__main__.train", Held: []Held{given}, Processes: 3, Let: 3, Copied: 15000}), "", nil},
	{"few copies", forks(1*gib, Fork{Target: "__main__.train", Held: []Held{given}, Processes: 3, Copied: 900}), "clean", []string{"3 processes that the program forked copied 11.1 MB"}},
	{"the parent lets go of other things on the same pages", forks(1*gib, Fork{Target: "__main__.train", Held: []Held{given}, Processes: 3, Gone: 14500, Copied: 15000}), "clean", nil},
	{"new memory", forks(1*gib, Fork{Target: "__main__.train", Held: []Held{given}, Processes: 3, New: 40000}), "clean", nil},
	{"few copies of those that were seen to their end", forks(1*gib, Fork{Target: "__main__.train", Held: []Held{given}, Processes: 3, Killed: 1, Copied: 900}), "", nil},
	{"no processes", forks(1 * gib), "", nil},
}

func TestForked(t *testing.T) {
	for _, c := range forkCases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			var verdict, text []string
			for _, f := range r.Findings {
				if f.Rule == memorygrowthcow.Rule.ID {
					verdict = append(verdict, f.Certainty.String())
					text = append(text, f.Title, f.Cost, f.Fix)
					for _, e := range f.Evidence {
						text = append(text, e.Text)
					}
				}
			}
			for _, k := range r.Checks {
				if k.Rule == memorygrowthcow.Rule.ID {
					verdict = append(verdict, string(k.Status))
					text = append(text, k.Reason)
				}
			}
			if got := strings.Join(verdict, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			Says(t, text, c.says)
		})
	}
}

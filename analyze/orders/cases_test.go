package orders_test

import (
	"slices"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/orderrepeats"
	"github.com/dptrace/dptrace/analyze/detect/samplernosetepoch"
	"github.com/dptrace/dptrace/analyze/finding"
)

const (
	distributed = "torch.utils.data.distributed.DistributedSampler"
	straight    = "torch.utils.data.sampler.SequentialSampler"
	weighted    = "torch.utils.data.sampler.WeightedRandomSampler"
)

func again(n int) func(int) []int64 { return func(int) []int64 { return Shuffled(n, 1) } }

func fresh(n int) func(int) []int64 {
	return func(pass int) []int64 { return Shuffled(n, uint64(pass)) }
}

func walk(n, first, step int) func(int) []int64 {
	return func(int) []int64 { return Ascending(n, first, step) }
}

func is(n int64) func(int) int64 { return func(int) int64 { return n } }

func each(pass int) int64 { return int64(pass) }

func of(list ...int) func(int) int { return func(pass int) int { return list[pass] } }

func by(list ...uint32) func(int) uint32 { return func(pass int) uint32 { return list[pass] } }

func one(w Walk) func(*Run) {
	return func(r *Run) {
		r.Process(-1, 0).Walk(w)
		r.Seal()
	}
}

// cases: what the rules sampler-no-set-epoch and order-repeats say
// of loader 1, in this order, and words of that; those behind "not:" must not be in it.
var cases = []struct {
	name string
	play func(*Run)
	want [2]string
	says []string
}{
	// No set_epoch.
	{"DistributedSampler at epoch 0", one(Walk{Sampler: distributed, Passes: 3, Epoch: is(0), Order: again(96)}), [2]string{"proven", "cannot-tell"},
		[]string{"Two of 3 passes", "the epoch of DistributedSampler stays 0", "loader.sampler.set_epoch(epoch)", "all 96 samples", "train.py:88", "not:on ranks"}},
	{"told once, before the loop", one(Walk{Sampler: distributed, Told: []int64{5}, Passes: 2, Epoch: is(5), Order: again(96)}), [2]string{"proven", "cannot-tell"},
		[]string{"One of 2 passes goes", "stays 5", "set_epoch was called once, the last time by train.py:80 with epoch 5"}},
	{"made anew for each pass, over one dataset", one(Walk{Sampler: distributed, Anew: true, Dataset: 1, Passes: 3, Epoch: is(0), Order: again(96)}), [2]string{"proven", "cannot-tell"}, []string{"set_epoch was never called"}},
	{"two ranks", func(r *Run) {
		for rank := range 2 {
			r.Process(rank, 2).Walk(Walk{Sampler: distributed, Passes: 2, Epoch: is(0), Order: func(int) []int64 { return Shuffled(48, uint64(rank)) }})
		}
		r.Seal()
	}, [2]string{"proven", "cannot-tell"}, []string{"on ranks 0 and 1", "of rank 0"}},
	{"in a batch sampler of the program's own", one(Walk{Sampler: distributed, BatchSampler: "__main__.Pairs", Passes: 3, Epoch: is(0), Order: again(96)}),
		[2]string{"likely", "cannot-tell"}, []string{"loader.batch_sampler.sampler.set_epoch"}},
	{"a sampler of the program's own with an epoch", one(Walk{Sampler: "__main__.Buckets", Passes: 3, Epoch: is(0), Order: again(96)}), [2]string{"likely", "cannot-tell"}, []string{"not PyTorch's own, is meant to give one order", "the epoch of Buckets stays 0"}},
	{"made anew for each pass", one(Walk{Sampler: distributed, Anew: true, Passes: 3, Epoch: is(0), Order: again(96)}), [2]string{"likely", "cannot-tell"}, []string{"other data each time"}},
	{"no optimizer", one(Walk{Sampler: distributed, Passes: 3, Epoch: is(0), Order: again(96), Optimizer: by(0, 0, 0)}), [2]string{"likely", "cannot-tell"}, nil},
	{"as many batches of each epoch", one(Walk{Sampler: distributed, Passes: 3, Epoch: is(0), Order: again(400), Break: of(20, 20, 20)}), [2]string{"proven", "cannot-tell"}, []string{"the first 160 samples"}},
	{"steps are up in the last epoch", one(Walk{Sampler: distributed, Passes: 2, Epoch: is(0), Order: again(400), Break: of(0, 33)}), [2]string{"likely", "cannot-tell"}, []string{"the first 2"}},

	{"told", one(Walk{Sampler: distributed, Passes: 3, Epoch: each, Order: fresh(96)}), [2]string{"clean", "clean"}, []string{"all in different orders"}},
	{"shuffle=False", one(Walk{Sampler: distributed, Passes: 3, Epoch: is(0), Order: walk(48, 1, 2)}), [2]string{"clean", "clean"}, nil},
	{"shuffle=False, padded", one(Walk{Sampler: distributed, Passes: 3, Epoch: is(0), Order: func(int) []int64 { return append(Ascending(48, 1, 2), 0) }}), [2]string{"clean", "clean"}, nil},
	{"evaluation", one(Walk{Sampler: distributed, Passes: 3, Epoch: is(0), Order: again(96), Optimizer: by(0, 0, 0), NoGrad: true}), [2]string{"not-applicable", "not-applicable"}, []string{"evaluation only"}},
	{"two trainings", one(Walk{Sampler: distributed, Passes: 2, Epoch: is(0), Order: again(96), Optimizer: by(1, 2)}), [2]string{"cannot-tell", "cannot-tell"}, []string{"no two passes of one training"}},
	{"a search for the learning rate before", one(Walk{Sampler: distributed, Passes: 2, Epoch: is(0), Order: again(400), Break: of(30, 0)}), [2]string{"clean", "clean"}, nil},
	{"too small to tell", one(Walk{Sampler: distributed, Passes: 3, Epoch: is(0), Order: again(12), Batch: 4}), [2]string{"cannot-tell", "cannot-tell"}, []string{"fewer than 16"}},
	{"one batch", one(Walk{Sampler: distributed, Passes: 3, Epoch: is(0), Order: again(64), Batch: 64}), [2]string{"cannot-tell", "cannot-tell"}, []string{"passes of one batch"}},

	// The order repeats.
	{"generator put back", one(Walk{Passes: 3, Generator: true, Seed: is(77), Order: again(96)}), [2]string{"not-applicable", "proven"},
		[]string{"Two of 3 passes", "RandomSampler shuffles", "base seed 77", "loader.generator.manual_seed(SEED + epoch)"}},
	{"torch seeded before each pass", one(Walk{Passes: 2, Seed: is(77), Order: again(96)}), [2]string{"not-applicable", "proven"}, []string{"torch was seeded anew", "torch.manual_seed(SEED + epoch)"}},
	{"every second pass", one(Walk{Passes: 4, Order: func(pass int) []int64 { return Shuffled(96, uint64(pass%2)) }}), [2]string{"not-applicable", "proven"}, []string{"Two of 4", "2 orders"}},
	{"drawn with replacement, once for all", one(Walk{Sampler: weighted, Passes: 2, Order: func(int) []int64 { o := Shuffled(96, 1); return append(o[:48], o[:48]...) }}), [2]string{"not-applicable", "proven"}, nil},
	{"many batches, the rows in pieces", one(Walk{Passes: 2, Batch: 2, Order: again(5000)}), [2]string{"not-applicable", "proven"}, nil},
	{"two sweeps in each order", one(Walk{Passes: 4, Generator: true, Seed: func(pass int) int64 { return int64(pass / 2) }, Order: func(pass int) []int64 { return Shuffled(96, uint64(pass/2)) }}), [2]string{"not-applicable", "likely"}, []string{"a few passes in a row"}},
	{"three sweeps in each order, the last ones cut", one(Walk{Passes: 5, Order: func(pass int) []int64 { return Shuffled(96, uint64(pass/3)) }}), [2]string{"not-applicable", "likely"}, []string{"a few passes in a row"}},
	{"one order, and a new one for each stage that comes again later", one(Walk{Passes: 5, Order: func(pass int) []int64 { return Shuffled(96, uint64(pass%4/2)) }}), [2]string{"not-applicable", "proven"}, nil},
	{"no optimizer, shuffled alike", one(Walk{Passes: 2, Order: again(96), Optimizer: by(0, 0)}), [2]string{"not-applicable", "likely"}, nil},
	{"batches of the program's own", one(Walk{BatchSampler: "__main__.Pairs", Passes: 2, Order: again(96)}), [2]string{"not-applicable", "likely"}, []string{"__main__.Pairs makes batches", "the batch sampler, which is not PyTorch's, decides"}},
	{"made anew with the same seed, over one dataset", one(Walk{Anew: true, Dataset: 1, Passes: 2, Order: again(96)}), [2]string{"not-applicable", "proven"}, nil},
	{"made anew with the same seed", one(Walk{Anew: true, Passes: 2, Order: again(96)}), [2]string{"not-applicable", "likely"}, []string{"other data"}},
	{"cut, but counted", func(r *Run) { r.Process(-1, 0).Walk(Walk{Passes: 2, Order: again(96)}) }, [2]string{"cannot-tell", "proven"}, nil},

	{"a right shuffle", one(Walk{Passes: 3, Order: fresh(96)}), [2]string{"not-applicable", "clean"}, nil},
	{"drawn with replacement", one(Walk{Sampler: weighted, Passes: 2, Order: func(pass int) []int64 { o := Shuffled(96, uint64(pass)); return append(o[:48], o[:48]...) }}), [2]string{"not-applicable", "clean"}, nil},
	{"one sample over and over", one(Walk{Sampler: weighted, Passes: 2, Order: walk(96, 5, 0)}), [2]string{"not-applicable", "cannot-tell"}, nil},
	{"sorted by length", one(Walk{Sampler: "__main__.ByLength", Passes: 3, Order: again(96)}), [2]string{"not-applicable", "note"}, []string{"not a sampler of torch's"}},
	{"batches by length", one(Walk{Sampler: straight, BatchSampler: "__main__.ByLength", Passes: 3, Order: again(96)}), [2]string{"not-applicable", "note"}, nil},
	{"a curriculum", one(Walk{Sampler: "__main__.Curriculum", Passes: 3, Order: walk(96, 0, 1)}), [2]string{"not-applicable", "cannot-tell"}, []string{"not:different orders"}},
	{"a list of the program's own", one(Walk{Sampler: "builtins.list", Passes: 3, Order: again(96)}), [2]string{"not-applicable", "note"}, nil},
	{"an epoch done over", one(Walk{Sampler: distributed, Passes: 3, Epoch: func(p int) int64 { return int64(max(p-1, 0)) }, Order: func(p int) []int64 { return Shuffled(96, uint64(max(p-1, 0))) }}),
		[2]string{"clean", "note"}, []string{"another one in other passes"}},
	{"told, in a pass that broke off", one(Walk{Sampler: distributed, Passes: 3, Epoch: func(p int) int64 { return int64(p / 2) }, Order: func(p int) []int64 { return Shuffled(400, uint64(p/2)) }, Break: of(0, 0, 1)}),
		[2]string{"clean", "note"}, nil},
	{"the first batch, every time", one(Walk{Passes: 3, Order: again(96), Break: of(1, 1, 1)}), [2]string{"not-applicable", "cannot-tell"}, nil},
	{"a look at the first batches", one(Walk{Passes: 2, Order: again(400), Break: of(3, 0)}), [2]string{"not-applicable", "cannot-tell"}, nil},
	{"keys", one(Walk{Passes: 3, Keys: true, Order: again(96)}), [2]string{"not-applicable", "cannot-tell"}, []string{"no integers"}},
	{"lost rows in one pass", one(Walk{Passes: 2, Order: again(96), Lost: func(pass, batch int) bool { return pass == 1 && batch == 4 }}), [2]string{"not-applicable", "cannot-tell"}, nil},
	{"the end is lost", one(Walk{Passes: 2, Order: again(96), Lost: func(pass, batch int) bool { return batch > 5 }}), [2]string{"not-applicable", "cannot-tell"}, nil},
	{"iterable", one(Walk{Iterable: true, Passes: 2, Order: again(96)}), [2]string{"not-applicable", "not-applicable"}, []string{"IterableDataset"}},
	{"one pass", one(Walk{Passes: 1, Order: again(96)}), [2]string{"not-applicable", "cannot-tell"}, []string{"one pass"}},
	{"cut", func(r *Run) { r.Process(-1, 0).Walk(Walk{Passes: 2, Order: fresh(96)}) }, [2]string{"cannot-tell", "cannot-tell"}, []string{"cut"}},
	{"cut, and no optimizer", func(r *Run) { r.Process(-1, 0).Walk(Walk{Passes: 2, Order: again(96), Optimizer: by(0, 0)}) }, [2]string{"cannot-tell", "cannot-tell"}, []string{"cut"}},
}

func TestCases(t *testing.T) {
	rules := []detect.Rule{samplernosetepoch.Rule, orderrepeats.Rule}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			var text []string
			for i, rule := range rules {
				findings := slices.DeleteFunc(slices.Clone(r.Findings), func(f finding.Finding) bool { return f.Rule != rule.ID })
				checks := slices.DeleteFunc(slices.Clone(r.Checks), func(c finding.Check) bool { return c.Rule != rule.ID })
				verdict := ""
				for _, f := range findings {
					verdict = f.Certainty.String()
					text = append(text, f.Title, f.Cost, f.Fix, f.NotABugIf)
					for _, e := range f.Evidence {
						text = append(text, e.Text)
						for _, ref := range e.Refs {
							if ref.Table != "pass" && ref.Table != "batch_put" && ref.Table != "set_epoch" || ref.Part == "" {
								t.Errorf("a strange row: %v", ref)
							}
						}
					}
				}
				if len(findings) > 1 || len(checks) != 1 {
					t.Fatalf("%s: %d findings, checks %v", rule.ID, len(findings), checks)
				}
				text = append(text, rule.ID+": "+checks[0].Reason)
				if found := checks[0].Status == "found"; found != (verdict != "") && !(verdict == "note" && checks[0].Status == "cannot-tell") {
					t.Errorf("%s: %q, but the check says %s", rule.ID, verdict, checks[0].Status)
				}
				if verdict == "" {
					verdict = string(checks[0].Status)
				}
				if verdict != c.want[i] {
					t.Errorf("%s: %s, want %s", rule.ID, verdict, c.want[i])
				}
			}
			Says(t, text, c.says)
		})
	}
}

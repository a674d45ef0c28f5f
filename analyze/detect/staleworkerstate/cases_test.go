package staleworkerstate_test

import (
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/staleworkerstate"
	"github.com/dptrace/dptrace/traces"
)

func counts(pass int) string { return fmt.Sprint(pass) }

func always(value string) func(int) string { return func(int) string { return value } }

func list(values ...string) func(int) string { return func(pass int) string { return values[pass] } }

func numbered(_ int, index int64) What { return Numbered(index) }

// shared is memory that the code reads, and that changed.
var shared = []traces.Attribute{{When: "shared", Path: "dataset.clock.t", Class: "torch.Tensor", Value: "changed", Read: "yes"}}

// missed is a list that was not compared.
func missed(why string, items int64) []traces.Attribute {
	return []traces.Attribute{{When: "missed", Path: "dataset.rows", Class: "builtins.list", Value: why, Items: items, Read: "yes"}}
}

// cases: what the training sets and what workers see, and what is said of it.
var cases = []struct {
	name string
	play Keeper
	want string
	says []string
}{
	{"an epoch", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Contains: numbered}, "proven",
		[]string{"dataset.epoch is set to 1 and 2, but the persistent workers keep 0: 2 of 3 passes", "workers 0 and 1", "data.py:12", "self.epoch = torch.tensor(0, dtype=torch.int64).share_memory_()", "dataset.epoch.fill_(value)", "in __getitem__\nepoch = int(self.epoch)",
			"persistent_workers=False", "8 batches in 2 passes", "the same bit for bit"}},
	{"a probability", Keeper{Workers: 1, Passes: 2, Set: list("0.1", "0.5"), Class: "float", Read: "yes"}, "proven", []string{"torch.float64", "set to 0.5", "not:bit for bit"}},
	{"a whole number first", Keeper{Workers: 1, Passes: 2, Set: list("0", "0.5"), Read: "yes"}, "proven", []string{"torch.tensor(0, dtype=torch.float64)", "= float(self.epoch)"}},
	{"without a bound", Keeper{Workers: 1, Passes: 2, Class: "float", Set: list("inf", "3.5"), Read: "yes"}, "proven", []string{"torch.tensor(float('inf'), dtype"}},
	{"a word from the second pass on", Keeper{Workers: 1, Passes: 2, Set: list("0", "'hard'"), Read: "yes"}, "proven", []string{"not:share_memory_"}},
	{"of a stream, set by no one line", Keeper{Workers: 2, Passes: 2, Set: counts, Read: "yes", Iterable: true, Nowhere: true}, "proven",
		[]string{"before the DataLoader of train.py:88 is made", "dataset.epoch = torch.tensor(0,", "in __iter__\nepoch", "not:__getitem__"}},
	{"of the collate function", Keeper{Workers: 2, Passes: 2, Set: counts, Read: "yes", Path: "collate_fn.pad"}, "proven", []string{"in __call__\npad = int(self.pad)"}},
	{"of a transform, which may be another one", Keeper{Workers: 2, Passes: 2, Set: counts, Read: "yes", Path: "dataset.transforms[0].size", Nowhere: true}, "proven",
		[]string{"so that they see the value that is set before it\nDataLoader(..., persistent_workers=False)\n\n# or, if that object stays", "dataset.transforms[0].size = torch.tensor(0,", "where it is read\nsize"}},
	{"of a dictionary", Keeper{Workers: 2, Passes: 2, Set: counts, Read: "yes", Path: "dataset.config['size']", Nowhere: true}, "proven", []string{"persistent_workers=False", "not:share_memory_"}},
	{"a word", Keeper{Workers: 2, Passes: 2, Set: list("'easy'", "'hard'"), Class: "str", Read: "yes"}, "proven", []string{"persistent_workers=False", "not:share_memory_"}},
	{"set back later", Keeper{Workers: 2, Passes: 4, Set: list("0", "1", "0", "1"), Read: "yes"}, "proven", []string{"2 of 4 passes", "set to 1, but"}},
	{"a worker without batches in one pass", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Idle: func(pass, worker int) bool { return pass == 1 && worker == 0 }}, "proven", []string{"2 of 3"}},
	{"a sanity check before", Keeper{Workers: 2, Passes: 3, Set: list("0", "0", "1"), Read: "yes", Break: func(pass int) bool { return pass == 0 }}, "proven", []string{"1 of 3 passes"}},
	{"other augmentations, other contents", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Contains: func(pass int, index int64) What { return Numbered(index + int64(1000*pass)) }}, "proven", []string{"not:bit for bit"}},

	{"not read by the fetching code", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "no"}, "clean", nil},
	{"reading not known", Keeper{Workers: 2, Passes: 3, Set: counts}, "note", []string{"It was not seen that"}},
	{"evaluation", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Eval: true}, "note", nil},

	{"the workers see it", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Sees: func(pass, _ int) string { return fmt.Sprint(pass) }}, "clean", nil},
	{"the workers count by themselves", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Sees: func(pass, worker int) string { return fmt.Sprint(10*pass + worker) }}, "clean", nil},
	{"one worker counts by itself", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Sees: func(pass, worker int) string { return fmt.Sprint(pass * worker) }}, "clean", nil},
	{"given by worker_init_fn", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Sees: func(_, worker int) string { return fmt.Sprint(100 + worker) }}, "clean", nil},
	{"only one worker has it", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Sees: func(_, worker int) string { return []string{"0", ""}[worker] }}, "cannot-tell", []string{"only 1 of 2 workers"}},
	{"no worker has it", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Sees: func(int, int) string { return "" }}, "clean", nil},
	{"in shared memory: no plain value", Keeper{Workers: 2, Passes: 3, Set: always("")}, "clean", nil},
	{"set once, before the first pass", Keeper{Workers: 2, Passes: 3, Set: always("7"), Read: "yes"}, "clean", nil},
	{"new in the training process", Keeper{Workers: 2, Passes: 3, Set: list("", "1", "2"), Read: "yes", Sees: func(int, int) string { return "" }}, "proven",
		[]string{"dataset.epoch is set to 1 and 2, but the persistent workers do not have it: 2 of 3 passes", "there was no dataset.epoch"}},
	{"new, and it is not known what reads it", Keeper{Workers: 2, Passes: 3, Set: list("", "1", "2"), Sees: func(int, int) string { return "" }}, "clean", nil},
	{"changed for a look at one batch", Keeper{Workers: 2, Passes: 3, Set: list("0", "1", "0"), Read: "yes", Break: func(pass int) bool { return pass == 1 }}, "clean", nil},
	{"workers of each pass", Keeper{Workers: 2, Passes: 3, Fresh: true, Set: counts, Read: "yes"}, "not-applicable", []string{"no persistent workers"}},
	{"workers of one pass without an end", Keeper{Workers: 2, Passes: 1, Fresh: true, Set: counts, Read: "yes", Break: func(int) bool { return true }}, "cannot-tell", []string{"never came to its end"}},
	{"one pass", Keeper{Workers: 2, Passes: 1, Set: counts, Read: "yes"}, "cannot-tell", []string{"one pass"}},
	{"another list", Keeper{Workers: 2, Passes: 3, Set: always("7"), Read: "yes", Renews: func(pass int) bool { return pass == 2 }}, "cannot-tell", []string{"dataset.rows (list) was changed in the training process before pass 2"}},
	{"a number that became a list", Keeper{Workers: 2, Passes: 3, Path: "dataset.rows", Set: list("0", "", ""), Read: "yes", Renews: func(pass int) bool { return pass == 1 }}, "cannot-tell", []string{"dataset.rows (list)"}},
	{"another list, and it is not known what reads it", Keeper{Workers: 2, Passes: 3, Set: always(""), Renews: func(pass int) bool { return pass > 0 }}, "cannot-tell", []string{"before pass 1"}},
	{"another list, for the training alone", Keeper{Workers: 2, Passes: 3, Set: always("7"), Read: "no", Renews: func(pass int) bool { return pass == 2 }}, "clean", nil},
	{"another list before the workers were started", Keeper{Workers: 2, Passes: 3, Set: always("7"), Read: "yes", Renews: func(pass int) bool { return pass == 0 }}, "clean", nil},
	{"an epoch, and another list", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Renews: func(pass int) bool { return pass == 2 }}, "proven", []string{"dataset.epoch is set"}},
	{"a list, compared in the workers", Keeper{Workers: 2, Passes: 3, Set: counts, Class: "list", Digest: true, Read: "yes"}, "proven",
		[]string{"dataset.epoch is changed before passes 1 and 2 (list of 9 items), but the persistent workers keep what it was", "as of pass 0", "not:share_memory_"}},
	{"a list that the workers change as well", Keeper{Workers: 2, Passes: 3, Set: counts, Class: "list", Digest: true, Read: "yes", Sees: func(pass, _ int) string { return fmt.Sprint(pass) }}, "clean", nil},
	{"of a global", Keeper{Workers: 2, Passes: 2, Set: counts, Read: "yes", Path: "__main__.EPOCH", Nowhere: true}, "proven",
		[]string{"reads __main__.EPOCH", "dataset.EPOCH = torch.tensor(0, dtype=torch.int64).share_memory_()", "instead of __main__.EPOCH = value", "persistent_workers=False"}},
	{"of a class", Keeper{Workers: 2, Passes: 2, Set: counts, Read: "yes", Path: "__main__.Points.epoch", Nowhere: true}, "proven", []string{"dataset.epoch = torch.tensor(0,"}},
	{"of a closure", Keeper{Workers: 2, Passes: 2, Set: counts, Read: "yes", Path: "collate_fn<closure cut>", Nowhere: true}, "proven", []string{"dataset.cut = torch.tensor(0,", "int(self.cut)"}},

	{"the workers may learn it from shared memory", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Others: shared}, "likely", []string{"the workers learn the value in another way"}},
	{"shared memory, but the samples did not change", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Others: shared, Contains: numbered}, "proven", nil},
	{"with the index of each sample", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Keys: true}, "likely", []string{"with the index"}},
	{"no step was seen, and gradients are on", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Unknown: true}, "likely", []string{"no step trains"}},
	{"a long list, compared in part", Keeper{Workers: 2, Passes: 3, Set: always("7"), Read: "yes", Others: missed("", 100_000)}, "cannot-tell", []string{"dataset.rows (list, 100,000 items) was compared in part only"}},
	{"an object of an extension", Keeper{Workers: 2, Passes: 3, Set: always("7"), Read: "yes", Others: missed("", 0)}, "cannot-tell", []string{"dataset.rows (list) cannot be looked into"}},
	{"more objects than are looked at", Keeper{Workers: 2, Passes: 3, Set: always("7"), Read: "yes", Others: missed("beyond the first 600 objects", 0)}, "cannot-tell", []string{"dataset.rows was not compared: beyond the first 600"}},
	{"an epoch, and something that was not compared", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Others: missed("", 100_000)}, "proven", nil},
	{"new, but not all of the workers was looked at", Keeper{Workers: 2, Passes: 3, Set: list("", "1", "2"), Read: "yes", Others: missed("beyond the first 128 values", 0), Sees: func(int, int) string { return "" }}, "cannot-tell", nil},
	{"rows of a worker are lost", Keeper{Workers: 2, Passes: 3, Set: counts, Read: "yes", Lost: true}, "cannot-tell", []string{"lost"}},
	{"an older hook", Keeper{Workers: 2, Passes: 3, Set: counts, Old: true}, "cannot-tell", []string{"not in the trace"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			run.Process(-1, 0).Keep(c.play)
			run.Seal()
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, staleworkerstate.Rule.ID, c.want, c.says)
		})
	}
}

package notshuffled_test

import (
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/notshuffled"
)

const distributed = "torch.utils.data.distributed.DistributedSampler"

const straight = "torch.utils.data.sampler.SequentialSampler"

func walk(n int) func(int) []int64 { return func(int) []int64 { return Ascending(n, 0, 1) } }

func fixed(_ int, index int64) What { return Numbered(index) }

func labelled(label func(index int64) int64) func(int, int64) What {
	return func(_ int, index int64) What {
		return What{Content: fmt.Sprint(index), Label: fmt.Sprint(label(index))}
	}
}

// window is a sample that goes on where the one before began, but for some.
func window(breaks func(index int64) bool) func(int, int64) What {
	return func(_ int, index int64) What {
		return What{Content: fmt.Sprint(index), Follows: !breaks(index)}
	}
}

var cases = []struct {
	name string
	play Walk
	want string
	says []string
}{
	{"forgotten", Walk{Sampler: straight, Passes: 3, Order: walk(96), Contains: fixed}, "likely", []string{"its 96 samples 0, 1, 2, ... in each of 3 passes", "12 batches", "shuffle=True", "none had changed", "not:labels"}},
	{"a rank's share, unshuffled", Walk{Sampler: distributed, Shuffle: "no", Passes: 3, Order: func(int) []int64 { return append(Ascending(96, 1, 2), 0) }, Contains: fixed}, "likely",
		[]string{"its 97 samples 1, 3, 5, ... in each of 3 passes", "DistributedSampler with shuffle=False", "DistributedSampler(dataset, shuffle=True)", "sampler.set_epoch(epoch)", "shuffled when it was written"}},
	{"a rank's share, unshuffled, sorted by label", Walk{Sampler: distributed, Shuffle: "no", Passes: 3, Order: func(int) []int64 { return Ascending(96, 0, 2) }, Contains: labelled(func(i int64) int64 { return i / 48 })}, "likely",
		[]string{"92 have the same", "not:shuffled when it was written"}},
	{"a rank's share, unshuffled, of mixed labels", Walk{Sampler: distributed, Shuffle: "no", Passes: 3, Order: func(int) []int64 { return Ascending(96, 0, 2) }, Contains: labelled(func(i int64) int64 { return Shuffled(96, 3)[i/2] % 4 })}, "note", nil},
	{"a rank's share, shuffled", Walk{Sampler: distributed, Shuffle: "yes", Passes: 3, Order: func(pass int) []int64 { return Shuffled(96, uint64(pass)) }, Contains: fixed}, "clean", nil},
	{"sorted by label", Walk{Sampler: straight, Passes: 2, Order: walk(96), Contains: labelled(func(i int64) int64 { return i / 24 })}, "likely", []string{"92 have the same", "it would be 2"}},
	{"labels in turn", Walk{Sampler: straight, Passes: 2, Order: walk(96), Contains: labelled(func(i int64) int64 { return i % 3 })}, "likely", []string{"0 have the same"}},

	{"shuffled when it was written", Walk{Sampler: straight, Passes: 2, Order: walk(400), Contains: labelled(func(i int64) int64 { return Shuffled(400, 3)[i] % 5 })}, "note", []string{"as mixed as"}},
	{"ready batches: a text in parts", Walk{Sampler: straight, Ready: true, Passes: 3, Order: walk(96), Contains: fixed}, "note", []string{"batch_size=None", "not:side by side"}},
	{"windows of a series", Walk{Sampler: straight, Passes: 3, Order: walk(96), Contains: window(func(int64) bool { return false })}, "note", []string{"windows of a series", "28 begin some steps further"}},
	{"windows of several series", Walk{Sampler: straight, Passes: 3, Order: walk(96), Contains: window(func(index int64) bool { return index%12 == 0 })}, "note", []string{"windows of a series"}},
	{"samples of which some are alike but for a step", Walk{Sampler: straight, Passes: 3, Order: walk(96), Contains: window(func(index int64) bool { return index > 12 })}, "likely", []string{"not:begin some steps"}},
	{"few batches", Walk{Sampler: straight, Passes: 9, Order: walk(80), Contains: fixed}, "note", []string{"overfitted"}},
	{"contents not known", Walk{Sampler: straight, Passes: 3, Order: walk(96)}, "note", []string{"is not known"}},
	{"next to nothing in the samples", Walk{Sampler: straight, Passes: 3, Order: walk(96), Contains: func(int, int64) What { return What{} }}, "note", nil},

	{"another sample at an index", Walk{Sampler: straight, Passes: 3, Order: walk(96), Contains: func(pass int, index int64) What { return Numbered(Shuffled(96, uint64(pass))[index]) }}, "cannot-tell", []string{"changes between the passes"}},
	{"augmented now and then", Walk{Sampler: straight, Passes: 2, Order: walk(96), Contains: func(pass int, index int64) What { return Numbered(index + 1000*int64(pass)*(index%7/6)) }}, "cannot-tell", nil},
	{"shuffled", Walk{Passes: 3, Order: func(pass int) []int64 { return Shuffled(96, uint64(pass)) }, Contains: fixed}, "clean", []string{"not in the order"}},
	{"evaluation", Walk{Sampler: straight, Passes: 3, Order: walk(96), Optimizer: func(int) uint32 { return 0 }, NoGrad: true, Contains: fixed}, "not-applicable", []string{"evaluation"}},
	{"no optimizer", Walk{Sampler: straight, Passes: 3, Order: walk(96), Optimizer: func(int) uint32 { return 0 }, Contains: fixed}, "cannot-tell", []string{"no optimizer"}},
	{"a sampler of the program's own", Walk{Sampler: "__main__.Curriculum", Passes: 3, Order: walk(96), Contains: fixed}, "cannot-tell", []string{"Curriculum"}},
	{"batches of the program's own", Walk{Sampler: straight, BatchSampler: "__main__.Pairs", Passes: 3, Order: walk(96), Contains: fixed}, "cannot-tell", nil},
	{"shuffle=False of a distributed sampler", Walk{Sampler: "torch.utils.data.distributed.DistributedSampler", Passes: 3, Order: walk(96), Contains: fixed}, "cannot-tell", []string{"must have been told"}},
	{"broken off", Walk{Sampler: straight, Passes: 3, Order: walk(400), Break: func(int) int { return 20 }, Contains: fixed}, "cannot-tell", []string{"broken off"}},
	{"one pass", Walk{Sampler: straight, Passes: 1, Order: walk(96), Contains: fixed}, "cannot-tell", []string{"one pass"}},
	{"two trainings", Walk{Sampler: straight, Passes: 2, Order: walk(96), Optimizer: func(pass int) uint32 { return uint32(pass + 1) }, Contains: fixed}, "cannot-tell", nil},
	{"iterable", Walk{Iterable: true, Passes: 3, Order: walk(96)}, "not-applicable", nil},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			run.Process(-1, 0).Walk(c.play)
			run.Seal()
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, notshuffled.Rule.ID, c.want, c.says)
		})
	}
}

package lastbatchsize1_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/lastbatchsize1"
	"github.com/dptrace/dptrace/traces"
)

const (
	torchBatches = "torch.utils.data.sampler.BatchSampler"
	random       = "torch.utils.data.sampler.RandomSampler"
)

// played is passes of a loader without workers.
type played struct {
	loader  traces.Loader
	asked   []int // samples that the sampler puts into each batch; nil: an IterableDataset
	fetched []int // that the fetch brings; nil: those
	passes  int
	every   int          // batches for an optimizer step; 0: 1
	skip    map[int]bool // batches that the loop passes over
	end     string       // of the passes: exhausted where it says nothing
	eval    bool
	raised  string // what ends the program in the last batch
	none    bool   // some samples are None
	lost    bool
	cut     bool
}

var full = traces.Loader{BatchSize: 8, Sampler: random, BatchSampler: torchBatches}

func batches(sampler string) traces.Loader {
	return traces.Loader{BatchSize: -1, Sampler: random, BatchSampler: sampler}
}

func collate(name string) traces.Loader {
	l := full
	l.Collate = name
	return l
}

func (p played) play(r *Run) {
	main := r.Process(-1, 0)
	l := p.loader
	l.Loader, l.Length, l.DatasetClass, l.File, l.Line, l.Iterable = 1, -1, "__main__.Points", "/home/me/proj/train.py", 88, p.asked == nil
	r.Add(main.Proc, l)
	var steps uint64
	fetched := p.fetched
	if fetched == nil {
		fetched = p.asked
	}
	for pass := range uint32(max(p.passes, 1)) {
		r.Add(main.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "begin"})
		for b, n := range fetched {
			if p.asked != nil {
				r.Add(main.Proc, traces.BatchPut{Loader: 1, Pass: pass, Batch: uint32(b), Worker: -1, Indices: make([]int64, p.asked[b])})
			}
			r.Add(main.Proc, traces.BatchFetch{Loader: 1, Pass: pass, Worker: -1, Batch: uint32(b), Fetch: uint32(b), Samples: int32(n)},
				traces.BatchNext{Loader: 1, Pass: pass, Batch: uint32(b), Worker: -1, Status: "ok", Steps: steps, Optimizer: 1, Grad: !p.eval})
			if p.none {
				r.Add(main.Proc, Digest(traces.Digest{Loader: 1, Pass: pass, Worker: -1, Batch: uint32(b), Fetch: uint32(b)}, Ascending(8, 8*b, 1), func(index int64) What {
					return [...]What{Numbered(index), {}}[index%2]
				}))
			}
			last := b == len(fetched)-1
			if (b+1)%max(p.every, 1) == 0 && !p.skip[b] && !p.eval && !(last && p.raised != "") {
				steps++
			}
		}
		if p.raised != "" {
			r.Add(main.Proc, traces.Exception{Worker: -1, Stage: "exit", Type: "ValueError", Message: p.raised})
			r.End("1")
			return
		}
		if p.end == "" {
			r.Add(main.Proc, traces.BatchNext{Loader: 1, Pass: pass, Batch: 1 << 31, Worker: -1, Status: "stop", Steps: steps, Optimizer: 1, Grad: !p.eval},
				traces.Pass{Loader: 1, Pass: pass, Phase: "end", End: "exhausted", Delivered: uint32(len(fetched))})
		} else {
			r.Add(main.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "end", End: p.end, Delivered: uint32(len(fetched))})
		}
	}
	if p.lost {
		r.Lost("hook", "batch_put", 3)
	}
	if !p.cut {
		r.End("0")
	}
}

// cases: want is the certainty or the status, and words that must be in what is
// said; those behind "not:" must not.
var cases = []struct {
	name string
	play played
	want string
	says []string
}{
	{"left over", played{loader: full, asked: []int{8, 8, 1}, passes: 2}, "proven", []string{"the last batch of both passes", "17 samples, 2 × 8 + 1", "drop_last=True", "another sample in each pass", "2 optimizer steps"}},
	{"torch's batch sampler", played{loader: batches(torchBatches), asked: []int{8, 8, 1}}, "proven", []string{"BatchSampler(sampler, batch_size=8, drop_last=True)"}},
	{"iterable", played{loader: traces.Loader{BatchSize: 4}, fetched: []int{4, 4, 1}}, "proven", []string{"continue", "not:DataLoader(..., batch_size=4, drop_last=True)"}},
	{"dropped in the fetch", played{loader: full, asked: []int{8, 8, 8}, fetched: []int{8, 1, 7}}, "proven", []string{"lost all other samples in the fetch", "asked for up to 8 samples in batch 1", "is_usable", "not:drop_last"}},
	{"torch refuses it", played{loader: full, asked: []int{8, 8, 1}, raised: "Expected more than 1 value per channel when training, got input size torch.Size([1, 8])"},
		"proven", []string{"The program ended there: ValueError"}},
	{"accumulated gradients, the step falls on it", played{loader: full, asked: []int{8, 8, 8, 1}, every: 2, passes: 2}, "proven", nil},

	{"accumulated gradients, no step on it", played{loader: full, asked: []int{8, 8, 8, 8, 1}, every: 2, passes: 2}, "likely", []string{"does not step after each batch"}},
	{"batch sampler of the user's own, else even", played{loader: batches("__main__.Buckets"), asked: []int{8, 8, 1}}, "likely", []string{"on purpose", "__main__.Buckets"}},
	{"the role may be another", played{loader: full, asked: []int{8, 8, 1}, passes: 2, lost: true}, "likely", nil},
	{"cut, the role may be another", played{loader: full, asked: []int{8, 8, 1}, passes: 2, cut: true}, "likely", nil},

	{"evaluation", played{loader: full, asked: []int{8, 8, 1}, eval: true}, "not-applicable", []string{"an evaluation"}},
	{"the loop passes over it", played{loader: full, asked: []int{8, 8, 1}, passes: 2, skip: map[int]bool{2: true}}, "clean", []string{"passed over"}},
	{"batch_size 1", played{loader: traces.Loader{BatchSize: 1, BatchSampler: torchBatches}, asked: []int{1, 1, 1}}, "not-applicable", []string{"asked for"}},
	{"two left over", played{loader: full, asked: []int{8, 8, 2}}, "clean", []string{"the smallest of 2 samples"}},
	{"iterable, even", played{loader: traces.Loader{BatchSize: 4}, fetched: []int{4, 4, 4}}, "clean", []string{"the smallest of 4"}},

	{"a collate function of the program's own", played{loader: collate("__main__.pad"), asked: []int{8, 8, 2}}, "clean", []string{"as they reach __main__.pad"}},
	{"that may drop what could not be read", played{loader: collate("__main__.pad"), asked: []int{8, 8, 2}, none: true}, "cannot-tell", []string{"__main__.pad leaves out"}},
	{"rows of zeros, torch's collate function", played{loader: collate("torch.utils.data._utils.collate.default_collate"), asked: []int{8, 8, 2}, none: true}, "clean", nil},
	{"the loop leaves at it", played{loader: full, asked: []int{8, 8, 1}, end: "dropped"}, "cannot-tell", []string{"whether the loop trained on 1 batch"}},
	{"buckets of many sizes", played{loader: batches("__main__.Buckets"), asked: []int{8, 1, 5, 8, 1}}, "cannot-tell", []string{"2 of one sample"}},
	{"one at a time among eight, on purpose", played{loader: batches("__main__.Curriculum"), asked: []int{1, 1, 8, 8}}, "cannot-tell", []string{"different sizes"}},
	{"__getitems__ that returns no list", played{loader: full, asked: []int{8, 8, 8}, fetched: []int{1, 1, 1}}, "clean", []string{"the smallest of 8"}},
	{"batch_size None", played{loader: traces.Loader{BatchSize: -1}, fetched: []int{1, 1, 1}}, "cannot-tell", []string{"batch_size=None"}},
	{"overfitting one sample", played{loader: full, asked: []int{1}, passes: 5}, "cannot-tell", []string{"one batch a pass"}},
	{"never used to the end", played{loader: full, asked: []int{8, 8, 8}, end: "dropped", passes: 2}, "cannot-tell", []string{"to its end"}},
	{"cut", played{loader: full, asked: []int{8, 8, 8}, cut: true}, "cannot-tell", []string{"cut"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, lastbatchsize1.Rule.ID, c.want, c.says)
		})
	}
}

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

// played is passes of a loader without workers, over a model with a batch norm.
type played struct {
	loader  traces.Loader
	asked   []int // samples that the sampler puts into each batch; nil: an IterableDataset
	fetched []int // that the fetch brings; nil: those
	rows    []int // of the batches as they are delivered; nil: those
	passes  int
	every   int          // batches for an optimizer step; 0: 1
	skip    map[int]bool // batches that the loop passes over
	flush   map[int]bool // batches that it passes over, with a step on the gradients of those before
	end     string       // of the passes: exhausted where it says nothing
	eval    bool
	plain   bool   // no layer computes anything over the rows of a batch
	raised  string // what ends the program in the last batch
	old     bool   // recorded by a dptrace that did not watch the loop
	killed  bool   // nothing is known of the end
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

// loop is what the training loop has done since the last next().
type loop struct {
	row     traces.BatchNext
	zeroed  uint64
	watched bool
}

// next is the row of a next(), or of the end.
func (l *loop) next(r traces.BatchNext) traces.BatchNext {
	r.Steps, r.Optimizer, r.Backwards, r.GradsFrom, r.GradsTo = l.row.Steps, 1, l.row.Backwards, l.row.GradsFrom, l.row.GradsTo
	r.Alone, r.GradOff, r.Watched = l.row.Alone, l.row.GradOff, l.watched
	l.row.GradsFrom, l.row.GradsTo, l.row.Alone, l.row.GradOff = 0, 0, false, false
	return r
}

func (l *loop) step() {
	l.row.Steps++
	l.row.GradsFrom, l.row.GradsTo, l.zeroed = l.zeroed, l.row.Backwards, l.row.Backwards
}

func (p played) play(r *Run) {
	main := r.Process(-1, 0)
	l := p.loader
	l.Loader, l.Length, l.DatasetClass, l.File, l.Line, l.Iterable = 1, -1, "__main__.Points", "/home/me/proj/train.py", 88, p.asked == nil
	r.Add(main.Proc, l)
	did := &loop{watched: !p.old}
	fetched := p.fetched
	if fetched == nil {
		fetched = p.asked
	}
	rows := p.rows
	if rows == nil {
		rows = fetched
	}
	for pass := range uint32(max(p.passes, 1)) {
		r.Add(main.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "begin"})
		for b, n := range fetched {
			if p.asked != nil {
				r.Add(main.Proc, traces.BatchPut{Loader: 1, Pass: pass, Batch: uint32(b), Worker: -1, Indices: make([]int64, p.asked[b])})
			}
			r.Add(main.Proc, traces.BatchFetch{Loader: 1, Pass: pass, Worker: -1, Batch: uint32(b), Fetch: uint32(b), Samples: int32(n)},
				did.next(traces.BatchNext{Loader: 1, Pass: pass, Batch: uint32(b), Worker: -1, Status: "ok", Grad: !p.eval, Rows: int32(rows[b])}))
			p.use(did, b, rows[b], b == len(fetched)-1)
		}
		if p.raised != "" {
			r.Add(main.Proc, traces.Exception{Worker: -1, Stage: "exit", Type: "ValueError", Message: p.raised})
			break
		}
		if p.end == "" {
			r.Add(main.Proc, did.next(traces.BatchNext{Loader: 1, Pass: pass, Batch: 1 << 31, Worker: -1, Status: "stop", Grad: !p.eval, Rows: -1}),
				traces.Pass{Loader: 1, Pass: pass, Phase: "end", End: "exhausted", Delivered: uint32(len(fetched))})
		} else {
			r.Add(main.Proc, traces.Pass{Loader: 1, Pass: pass, Phase: "end", End: p.end, Delivered: uint32(len(fetched))})
		}
	}
	if !p.killed {
		r.Add(main.Proc, did.next(traces.BatchNext{Worker: -1, Status: "exit", Rows: -1}))
	}
	if p.lost {
		r.Lost("hook", "batch_put", 3)
	}
	if !p.cut {
		r.End(map[bool]string{false: "0", true: "1"}[p.raised != ""])
	}
}

// use of a batch.
func (p played) use(did *loop, batch, rows int, last bool) {
	switch {
	case p.eval:
		did.row.GradOff = true
	case p.flush[batch]:
		did.step()
	case p.skip[batch]:
	case last && p.raised != "":
		did.row.Alone = rows == 1
	default:
		did.row.Alone = rows == 1 && !p.plain
		did.row.Backwards++
		if (batch+1)%max(p.every, 1) == 0 {
			did.step()
		}
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
	{"dropped by the collate function", played{loader: collate("__main__.usable"), asked: []int{8, 8, 8}, rows: []int{8, 1, 7}}, "proven", []string{"lost all other samples in the collate function", "__main__.usable dropped the others", "is_usable", "not:drop_last"}},
	{"torch refuses it", played{loader: full, asked: []int{8, 8, 1}, raised: "Expected more than 1 value per channel when training, got input size torch.Size([1, 8])"},
		"proven", []string{"The program ended there: ValueError"}},
	{"torch refuses it in mid-pass", played{loader: collate("__main__.usable"), asked: []int{8, 8, 8}, rows: []int{8, 8, 1}, raised: "Expected more than 1 value per channel when training, got input size torch.Size([1, 8])"},
		"proven", []string{"The program ended there: ValueError", "__main__.usable"}},
	{"torch refuses the first batch, nothing was trained yet", played{loader: full, asked: []int{8, 1}, skip: map[int]bool{0: true}, raised: "Expected more than 1 value per channel when training, got input size torch.Size([1, 8])"},
		"proven", nil},
	{"accumulated gradients, the step falls on it", played{loader: full, asked: []int{8, 8, 8, 1}, every: 2, passes: 2}, "proven",
		[]string{"2 batches of one sample, in place of 8, in steps on the gradients of several batches"}},
	{"accumulated gradients, a later step uses them", played{loader: full, asked: []int{8, 8, 8, 8, 1}, every: 2, passes: 2}, "proven",
		[]string{"1 batch of one sample, in place of 8, in steps on the gradients of several batches"}},

	{"batch sampler of the user's own", played{loader: batches("__main__.Buckets"), asked: []int{8, 8, 1}}, "likely", []string{"on purpose", "__main__.Buckets"}},
	{"batches that the dataset makes", played{loader: traces.Loader{BatchSize: -1}, fetched: []int{1, 1, 1}, rows: []int{8, 8, 1}}, "likely", []string{"on purpose"}},
	{"the role may be another", played{loader: full, asked: []int{8, 8, 1}, passes: 2, lost: true}, "likely", []string{"rows that would tell are lost"}},
	{"cut, the role may be another", played{loader: full, asked: []int{8, 8, 1}, passes: 2, cut: true}, "likely", nil},

	{"no batch norm", played{loader: full, asked: []int{8, 8, 1}, passes: 2, plain: true}, "note", []string{"No batch norm"}},
	{"an item of many rows", played{loader: collate("torch.cat"), asked: []int{8, 8, 1}, rows: []int{192, 192, 24}, passes: 2}, "clean", []string{"the smallest of 24 rows"}},
	{"evaluation", played{loader: full, asked: []int{8, 8, 1}, eval: true}, "not-applicable", []string{"an evaluation"}},
	{"the loop passes over it", played{loader: full, asked: []int{8, 8, 1}, passes: 2, skip: map[int]bool{2: true}}, "clean", []string{"passed over"}},
	{"it flushes what was accumulated, and passes over it", played{loader: full, asked: []int{8, 8, 8, 1}, passes: 2, every: 2, flush: map[int]bool{3: true}}, "clean", []string{"passed over"}},
	{"batch_size 1", played{loader: traces.Loader{BatchSize: 1, BatchSampler: torchBatches}, asked: []int{1, 1, 1}}, "not-applicable", []string{"asked for"}},
	{"one row of many samples, always", played{loader: collate("__main__.pack"), asked: []int{8, 8, 8}, rows: []int{1, 1, 1}, plain: true}, "not-applicable", []string{"__main__.pack"}},
	{"two left over", played{loader: full, asked: []int{8, 8, 2}}, "clean", []string{"the smallest of 2 rows"}},
	{"iterable, even", played{loader: traces.Loader{BatchSize: 4}, fetched: []int{4, 4, 4}}, "clean", []string{"the smallest of 4"}},
	{"a collate function of the program's own", played{loader: collate("__main__.pad"), asked: []int{8, 8, 2}}, "clean", []string{"the smallest of 2"}},

	{"no array in the batches", played{loader: collate("__main__.graphs"), asked: []int{8, 8, 2}, rows: []int{-1, -1, -1}}, "cannot-tell", []string{"how many rows 3 batches have"}},
	{"killed at it", played{loader: full, asked: []int{8, 8, 1}, end: "dropped", killed: true}, "cannot-tell", []string{"whether the loop trained on 1 batch"}},
	{"gradients are left when the program ends", played{loader: full, asked: []int{8, 8, 8, 8, 1}, every: 2}, "cannot-tell", []string{"whether the loop trained on 1 batch"}},
	{"an older trace", played{loader: full, asked: []int{8, 8, 1}, passes: 2, old: true}, "cannot-tell", []string{"an older dptrace"}},
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

package splitleak_test

import (
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/splitleak"
	"github.com/dptrace/dptrace/traces"
)

// of is samples of the dataset inside, at the first places of a Subset.
func of(dataset int64, indices ...int64) (list []Sample) {
	for i, index := range indices {
		list = append(list, Sample{Index: int64(i), ID: dataset<<40 | index, Content: fmt.Sprint("row ", index)})
	}
	return list
}

// as is these samples with another content.
func as(what string, list []Sample) []Sample {
	for i := range list {
		list[i].Content = what + " of " + list[i].Content
	}
	return list
}

// span is every step-th number, every one if nothing is said.
func span(from, to int64, step ...int64) (list []int64) {
	for i := from; i < to; i += append(step, 1)[0] {
		list = append(list, i)
	}
	return list
}

// holding is samples of dataset 1 that contain a row of some number each.
func holding(indices []int64, row func(int64) int64) []Sample {
	list := of(1, indices...)
	for i := range list {
		list[i].Content = fmt.Sprint("row ", row(indices[i]))
	}
	return list
}

// doubled is 100 rows, and the last 40 of them once more.
func doubled(i int64) int64 {
	if i >= 100 {
		return i - 41 // so that odd indices have copies at even ones
	}
	return i
}

// elsewhere is the samples in a dataset of as many, from index 0 on.
func elsewhere(list []Sample) []Sample {
	for i := range list {
		list[i].ID = list[i].ID>>40<<40 | int64(i)
	}
	return list
}

const subset = "torch.utils.data.dataset.Subset"

// two is a loader that evaluates, which is loader 1, and one that trains.
func two(p *Process) (eval, train *Server) {
	train = p.Serve(Serve{Line: 90, Dataset: subset, Length: -1})
	return p.Serve(Serve{Line: 91, Dataset: subset, Length: -1, Samplers: SequentialSampler}), train
}

// alternate trains and evaluates, three times.
func alternate(train, eval []Sample) func(*Run) {
	return func(r *Run) {
		e, t := two(r.Process(-1, 0))
		for range 3 {
			t.Pass(Train, train)
			e.Pass(Eval, eval)
		}
	}
}

// splits is two ranks that train on halves of 0 to 60 and the first 20 again, the
// first of which evaluates some. op: "ddp", "alone" (a group for each), or none.
func splits(op string, eval []int64) func(*Run) {
	return func(r *Run) {
		var ranks [2]*Process
		for rank := range ranks {
			ranks[rank] = r.Process(rank, 2)
			switch op {
			case "ddp":
				ranks[rank].Group(op)
			case "alone":
				ranks[rank].Group("ddp", int64(rank))
			}
		}
		for rank, p := range ranks {
			t := p.Serve(Serve{Line: 90, Dataset: subset, Length: -1, Samplers: DistributedSampler})
			e := p.Serve(Serve{Line: 91, Dataset: subset, Length: -1, Samplers: SequentialSampler})
			t.Pass(Train, of(1, append(span(0, 20), span(int64(20+20*rank), int64(40+20*rank))...)...))
			if rank == 0 {
				e.Pass(Eval, of(1, eval...))
			}
		}
		for _, p := range ranks {
			r.Add(p.Proc, traces.Memory{Rss: 1})
		}
	}
}

var cases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	{"two splits", alternate(of(1, span(0, 80)...), of(1, span(60, 100)...)), "proven",
		[]string{"20 of 40 samples that are evaluated have been trained on", "50 %", "Sample 60, for example: the loader of train.py:90 was given it in batch 15 of its pass 0, and this loader in batch 0 of pass 0", "60, 61, 62", "two calls of random_split", "torch.Generator().manual_seed(0)"}},
	{"one sample", alternate(of(1, span(0, 81)...), of(1, span(80, 100)...)), "proven", []string{"1 of 20"}},
	{"a test set at the end", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		val := p.Serve(Serve{Line: 95, Dataset: subset, Length: -1})
		for range 2 {
			t.Pass(Train, of(1, span(0, 60)...))
			val.Pass(Eval, of(1, span(60, 80)...))
		}
		e.Pass(Eval, of(1, span(50, 90)...))
	}, "proven", []string{"10 of 40"}},
	{"in the middle of an epoch, of an earlier one", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		t.Pass(Train, of(1, 1, 2, 3, 4, 5, 6, 7, 8))
		e.Pass(Eval, of(1, 50, 51, 52, 53))
		t.Pass(Train, of(1, 11, 12, 13, 14, 15, 16, 17, 18))
		e.Pass(Eval, of(1, 1, 2, 52, 53))
	}, "proven", []string{"2 of 4"}},
	{"gradients on, a loop of its own", func(r *Run) {
		e, t := two(r.Process(-1, 0))
		t.Pass(Train, of(1, span(0, 80)...))
		e.Pass(Pass{}, of(1, span(70, 90)...))
	}, "proven", nil},
	{"trained on by the other rank", splits("ddp", span(50, 70)), "proven",
		[]string{"10 of 20", "on rank 1", "pass 0 on rank 0", "what it holds back, rank 1 trains on", "one split on all ranks", "seed + rank", "not:DataLoader(train", "not:random_split draw two"}},
	{"trained on by this rank and the other", splits("ddp", span(10, 80)), "proven", []string{"two calls of random_split", "sampler=torch.utils.data.DistributedSampler(train)"}},
	{"all of it on the other rank, which this one never met", splits("ddp", span(40, 60)), "note", []string{"error in training", "by other ranks alone"}},
	{"much of it, and all on the other rank", func(r *Run) {
		ranks := [2]*Process{r.Process(0, 2), r.Process(1, 2)}
		for rank, p := range ranks {
			p.Group("ddp")
			e, t := two(p)
			t.Pass(Train, of(1, span(int64(80*rank), int64(80*rank+100))...))
			if rank == 0 {
				e.Pass(Eval, of(1, span(110, 170)...))
			}
		}
		for _, p := range ranks {
			r.Add(p.Proc, traces.Memory{Rss: 1})
		}
	}, "proven", []string{"60 of 60", "what it holds back, rank 1 trains on"}},
	{"a fold or a trial on each rank, whose gradients are their own", splits("", span(50, 70)), "cannot-tell", []string{"this model or one of their own"}},
	{"a fold or a trial on each rank, in a group of its own", func(r *Run) {
		splits("alone", span(50, 70))(r)
	}, "clean", []string{"none of 20"}},
	{"Lightning's rehearsal of the whole of a small set, before the loader that trains is made", func(r *Run) {
		p := r.Process(-1, 0)
		e := p.Serve(Serve{Line: 91, Dataset: subset, Length: -1, Samplers: SequentialSampler,
			Stack: "/home/me/proj/train.py:91\n/usr/lib/python3/dist-packages/pytorch_lightning/loops/evaluation_loop.py:191"})
		e.Pass(Eval, of(1, span(60, 68)...))
		t := p.Serve(Serve{Line: 90, Dataset: subset, Length: -1})
		for range 2 {
			t.Pass(Train, of(1, span(0, 64)...))
			e.Pass(Eval, of(1, span(60, 68)...))
		}
	}, "proven", []string{"4 of 8"}},

	{"one dataset that gives other parts of an index when it is told that it evaluates", alternate(of(1, span(0, 80)...), as("part", of(1, span(60, 100)...))), "cannot-tell",
		[]string{"20 of 40 (50 %) at indices that were trained on", "another sample"}},
	{"the same of all of them", alternate(of(1, span(0, 80)...), as("part", of(1, span(20, 40)...))), "cannot-tell", []string{"another sample"}},
	{"augmented wherever it is read", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		r.Add(p.Proc, traces.RngState{When: "after"})
		for epoch := range 3 {
			t.Pass(Train, as(fmt.Sprint("version ", epoch), of(1, span(0, 80)...)))
			e.Pass(Eval, as(fmt.Sprint("version ", 3+epoch), of(1, span(60, 100)...)))
		}
	}, "likely", []string{"gives something else at an index"}},
	{"augmented in training alone", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		r.Add(p.Proc, traces.RngState{When: "after"})
		for epoch := range 3 {
			t.Pass(Train, as(fmt.Sprint("version ", epoch), of(1, span(0, 80)...)))
			e.Pass(Eval, of(1, span(60, 100)...))
		}
	}, "likely", []string{"20 times", "draw random numbers", "gives something else at an index"}},
	{"other samples in the evaluation, of which the dataset is told, wherever fetches draw", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		r.Add(p.Proc, traces.RngState{When: "after"})
		for epoch := range uint32(3) {
			r.Add(p.Proc, traces.Attribute{Loader: 1, Pass: epoch, Worker: -1, When: "begin", Dataset: 1, Path: "dataset.mode", Class: "builtins.str", Value: "'train'"})
			t.Pass(Train, as(fmt.Sprint("version ", epoch), of(1, span(0, 80)...)))
			r.Add(p.Proc, traces.Attribute{Loader: 2, Pass: epoch, Worker: -1, When: "begin", Dataset: 1, Path: "dataset.mode", Class: "builtins.str", Value: "'test'"})
			e.Pass(Eval, as(fmt.Sprint("version ", 3+epoch), of(1, span(60, 100)...)))
		}
	}, "cannot-tell", []string{"that were compared differ; dataset.mode is 'test', and was 'train' in training"}},
	{"the same samples, whatever the dataset is told", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		t.Pass(Train, of(1, span(0, 80)...))
		r.Add(p.Proc, traces.Attribute{Loader: 2, Worker: -1, When: "begin", Dataset: 1, Path: "dataset.mode", Class: "builtins.str", Value: "'test'"})
		e.Pass(Eval, of(1, span(60, 100)...))
	}, "proven", []string{"the same, bit for bit, 20 times"}},
	{"some of it is the same", alternate(of(1, span(0, 80)...), append(of(1, span(60, 62)...), as("part", of(1, span(62, 100)...))...)), "proven", nil},

	{"each part before it is trained on, in the order of time", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		all := of(1, span(0, 120)...)
		t.Within(Train, all, func(batch int) {
			if batch%4 == 3 { // the 16 samples after the last one that was trained on; they are trained on next
				e.Pass(Eval, of(1, span(int64(4*batch+4), int64(4*batch+20))...))
			}
		})
	}, "clean", []string{"none of 16 samples"}},
	{"each part, and half of what was trained on last, while more of it is to come", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		t.Within(Train, of(1, span(0, 120)...), func(batch int) {
			if batch == 15 {
				e.Pass(Eval, append(of(1, span(56, 72)...), of(1, span(300, 320)...)...))
			}
		})
	}, "proven", []string{"8 of 36 samples", "Their indices: 56, 57, 58"}},
	{"a look at a random part of the training set, in the middle of an epoch", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		t.Within(Train, of(1, span(0, 120)...), func(batch int) {
			if batch == 15 {
				e.Pass(Eval, of(1, span(40, 100)...))
			}
		})
	}, "note", []string{"dealt to the training"}},
	{"a part of what is drawn with replacement", func(r *Run) {
		p := r.Process(-1, 0)
		t := p.Serve(Serve{Line: 90, DatasetID: 1, Length: 200, Samplers: WeightedSampler, Replacement: "yes"})
		e := p.Serve(Serve{Line: 91, Dataset: subset, Length: 100, Samplers: SequentialSampler})
		var drawn []Sample
		for i := range int64(100) {
			drawn = append(drawn, Sample{Index: i * i % 200, Content: fmt.Sprint("row ", i*i%200)})
		}
		t.Pass(Train, drawn)
		e.Pass(Eval, of(1, span(50, 150)...))
	}, "note", []string{"dealt to the training"}},
	{"a part of what is drawn with replacement from a part", func(r *Run) {
		p := r.Process(-1, 0)
		t := p.Serve(Serve{Line: 90, Dataset: subset, Length: 160, Samplers: WeightedSampler, Replacement: "yes"})
		e := p.Serve(Serve{Line: 91, Dataset: subset, Length: 80, Samplers: SequentialSampler})
		t.Pass(Train, of(1, span(0, 90)...))
		e.Pass(Eval, of(1, span(40, 120)...))
	}, "cannot-tell", []string{"as many as of any that the training may draw"}},
	{"held out from what is drawn with replacement, but for some", func(r *Run) {
		p := r.Process(-1, 0)
		t := p.Serve(Serve{Line: 90, Dataset: subset, Length: 160, Samplers: WeightedSampler, Replacement: "yes"})
		e := p.Serve(Serve{Line: 91, Dataset: subset, Length: 80, Samplers: SequentialSampler})
		t.Pass(Train, of(1, span(0, 120)...))
		e.Pass(Eval, of(1, span(110, 190)...))
	}, "proven", []string{"10 of 80"}},
	{"a pool with what is known already, from which training takes more", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		t.Pass(Train, of(1, span(0, 20)...))
		e.Pass(Eval, of(1, span(10, 100)...))
		p.Serve(Serve{Line: 90, Dataset: subset, Length: -1}).Pass(Train, of(1, span(0, 36)...))
	}, "cannot-tell", []string{"10 of 90 (11 %) had been trained on, and 16 more were after it"}},
	{"the same with one loader, whose list grows", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		t.Pass(Train, of(1, span(0, 20)...))
		e.Pass(Eval, of(1, span(10, 100)...))
		t.Pass(Train, of(1, span(0, 36)...))
	}, "cannot-tell", []string{"16 more were after it"}},
	{"folds side by side, then all of them are evaluated", func(r *Run) {
		p := r.Process(-1, 0)
		var e, t []*Server
		for range 2 {
			a, b := two(p)
			e, t = append(e, a), append(t, b)
		}
		for range 2 {
			for _, fold := range []int{1, 0} {
				t[fold].Pass(Pass{Optimizer: uint32(1 + fold)}, of(1, span(int64(20*fold), int64(20*fold+20))...))
			}
			for fold := range 2 {
				e[fold].Pass(Eval, of(1, append(span(int64(20-20*fold), int64(30-20*fold)), span(70, 90)...)...))
			}
		}
	}, "cannot-tell", []string{"2 models were trained side by side"}},
	{"other samples in each evaluation", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		for epoch := range int64(3) {
			t.Pass(Train, of(1, span(0, 60)...))
			e.Pass(Eval, of(1, append(span(4*epoch, 4*epoch+4), span(100+10*epoch, 110+10*epoch)...)...))
		}
	}, "proven", []string{"12 of 42 samples", "the samples of 3 evaluations; in pass 0 they are 4 of 14"}},
	{"collate functions of its own each", func(r *Run) {
		p := r.Process(-1, 0)
		t := p.Serve(Serve{Line: 90, Dataset: subset, Length: -1, Collate: "__main__.all_but_the_last"})
		e := p.Serve(Serve{Line: 91, Dataset: subset, Length: -1, Collate: "__main__.the_last"})
		t.Pass(Train, of(1, span(0, 80)...))
		e.Pass(Eval, of(1, span(60, 100)...))
	}, "likely", []string{"the collate function of the evaluation takes another part"}},

	{"rare rows were doubled behind the others before the split", alternate(holding(span(0, 140, 2), doubled), holding(span(1, 140, 2), doubled)), "likely",
		[]string{"40 of 70 samples that are evaluated are copies", "all copies lie at indices 100 to 139", "split first", "equal by themselves"}},
	{"data that comes again as a whole", alternate(holding(span(0, 100), func(i int64) int64 { return i % 40 }), holding(span(100, 140), func(i int64) int64 { return i % 40 })), "cannot-tell",
		[]string{"40 of 40 (100 %) contain, bit for bit"}},
	{"few values", alternate(holding(span(0, 100), func(i int64) int64 { return i * i % 61 }), holding(span(100, 140), func(i int64) int64 { return i * i % 61 })), "cannot-tell", []string{"equal by themselves"}},
	{"rows in two files", alternate(of(1, span(0, 80)...), elsewhere(of(2, span(70, 100)...))), "likely", []string{"10 of 30 samples", "a dataset object each", "rows of the one are rows of the other"}},
	{"training's own rows, through another dataset object", alternate(of(1, span(0, 80)...), elsewhere(of(2, span(20, 50)...))), "cannot-tell", []string{"30 of 30 (100 %)"}},
	{"other rows in two files", alternate(of(1, span(0, 80)...), elsewhere(of(2, span(80, 100)...))), "clean", []string{"no content is in both datasets"}},
	{"other rows in two files, augmented", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		r.Add(p.Proc, traces.RngState{When: "after"})
		for epoch := range 2 {
			t.Pass(Train, as(fmt.Sprint("version ", epoch), of(1, span(0, 80)...)))
			e.Pass(Eval, elsewhere(of(2, span(80, 100)...)))
		}
	}, "cannot-tell", []string{"a dataset object of its own"}},
	{"other rows in two files, a part of which was looked at", alternate(of(1, span(0, 80)...), append(elsewhere(of(2, span(80, 100)...)), Sample{Index: 20, ID: 2<<40 | 20})), "cannot-tell", nil},

	{"all of it is trained on", alternate(of(1, span(0, 80)...), of(1, span(20, 40)...)), "note", []string{"error in training"}},
	{"predictions for everything", alternate(of(1, span(0, 80)...), of(1, span(0, 100)...)), "note", []string{"and others"}},

	{"one split", alternate(of(1, span(0, 80)...), of(1, span(80, 100)...)), "clean", []string{"none of 20 samples", "3 evaluations"}},
	{"two datasets", alternate(of(1, span(0, 80)...), of(2, span(0, 20)...)), "cannot-tell", []string{"a dataset object of its own"}},
	{"folds, one optimizer, loaders made anew at their lines: the model may not have been reset", func(r *Run) {
		p := r.Process(-1, 0)
		for fold := range int64(3) {
			e, t := two(p)
			for range 2 {
				t.Pass(Train, of(1, append(span(0, 20*fold), span(20*fold+20, 60)...)...))
				e.Pass(Eval, of(1, span(20*fold, 20*fold+20)...))
			}
		}
	}, "cannot-tell", []string{"20 of 20 (100 %) before, in another fold"}},
	{"walking forward, one optimizer", func(r *Run) {
		p := r.Process(-1, 0)
		for month := range int64(3) {
			e, t := two(p)
			t.Pass(Train, of(1, span(0, 40+20*month)...))
			e.Pass(Eval, of(1, span(40+20*month, 60+20*month)...))
		}
	}, "clean", []string{"none of 20"}},
	{"pseudo-labels", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		t.Pass(Train, of(1, span(0, 20)...))
		for round := range int64(3) {
			e.Pass(Eval, of(1, span(20, 100)...))
			p.Serve(Serve{Line: 90, Dataset: subset, Length: -1}).Pass(Train, of(1, span(0, 40+10*round)...))
		}
		e.Pass(Eval, of(1, span(20, 100)...))
	}, "cannot-tell", []string{"40 of 80 (50 %) before", "made after an evaluation"}},
	{"folds, an optimizer each", func(r *Run) {
		p := r.Process(-1, 0)
		var e, t []*Server
		for range 2 {
			a, b := two(p)
			e, t = append(e, a), append(t, b)
		}
		for fold := range 2 {
			t[fold].Pass(Pass{Optimizer: uint32(1 + fold)}, of(1, span(int64(20*fold), int64(20*fold+20))...))
		}
		e[1].Pass(Eval, of(1, span(0, 20)...))
	}, "clean", nil},
	{"looked at before training", func(r *Run) {
		e, t := two(r.Process(-1, 0))
		e.Pass(Eval, of(1, span(0, 40)...))
		t.Pass(Train, of(1, span(0, 20)...))
		e.Pass(Eval, of(1, span(20, 40)...))
	}, "clean", nil},
	{"fetched ahead when the loop broke off", func(r *Run) {
		e, t := two(r.Process(-1, 0))
		t.Pass(Pass{Optimizer: 1, Break: 5}, of(1, span(0, 40)...))
		e.Pass(Eval, of(1, span(20, 40)...))
	}, "clean", nil},

	{"an object each, of one class and length", func(r *Run) {
		p := r.Process(-1, 0)
		t := p.Serve(Serve{Line: 90, DatasetID: 1, Length: 100})
		e := p.Serve(Serve{Line: 91, DatasetID: 2, Length: 100})
		var list []Sample
		for i := range int64(20) {
			list = append(list, Sample{Index: i})
		}
		t.Pass(Train, list)
		e.Pass(Eval, list)
	}, "cannot-tell", []string{"a dataset object of its own"}},
	{"no evaluation", func(r *Run) {
		_, t := two(r.Process(-1, 0))
		t.Pass(Train, of(1, span(0, 20)...))
	}, "cannot-tell", []string{"no evaluation was seen"}},
	{"a second loader of each step", func(r *Run) {
		p := r.Process(-1, 0)
		e, t := two(p)
		for i := range int64(6) { // next(iter(loader)) beside the training
			e.Pass(Pass{Break: 1}, of(1, span(4*i, 4*i+8)...))
			t.Pass(Train, of(1, span(0, 40)...))
		}
	}, "cannot-tell", nil},
	{"the ranks' datasets are not known to be one", func(r *Run) {
		var ranks [2]*Process
		for rank := range ranks {
			ranks[rank] = r.Process(rank, 2)
			ranks[rank].Group("ddp")
		}
		for rank, p := range ranks {
			e, t := two(p)
			other := of(1, span(int64(20*rank), int64(20*rank+20))...)
			for i := range other {
				other[i].Content = ""
			}
			t.Pass(Train, other)
			if rank == 0 {
				e.Pass(Eval, of(1, span(20, 40)...))
			}
		}
		for _, p := range ranks {
			r.Add(p.Proc, traces.Memory{Rss: 1})
		}
	}, "cannot-tell", []string{"other ranks trained"}},
	{"lost", func(r *Run) {
		alternate(of(1, span(0, 80)...), of(1, span(80, 100)...))(r)
		r.Lost("hook", "batch_put", 3)
	}, "cannot-tell", []string{"lost"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play(run)
			run.Seal()
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			// Loaders are numbered by their lines' first use: that of the evaluation is wanted.
			number := 0
			for _, l := range r.Timeline.Loaders {
				if n := l.First().Line; n == 91 || number == 0 {
					number = l.ID
				}
			}
			for i := range r.Findings {
				if r.Findings[i].Loader.ID == number {
					r.Findings[i].Loader.ID = 1
				} else {
					r.Findings[i].Loader.ID = -1
				}
			}
			for i := range r.Checks {
				if r.Checks[i].Loader == number {
					r.Checks[i].Loader = 1
				} else {
					r.Checks[i].Loader = -1
				}
			}
			Verdict(t, r.Findings, r.Checks, splitleak.Rule.ID, c.want, c.says)
		})
	}
}

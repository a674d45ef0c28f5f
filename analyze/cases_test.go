package analyze_test

import (
	"fmt"

	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
)

// The programs of cases, each with a form of the bugs or something that looks
// like one. want: what is said about loader 1, or 2 after "2 ", by rule:
// workers, epochs, ranks. A check's reason is compared as a part.
type program struct {
	name string
	play func(*Run)
	want map[string]string
}

var (
	datasetRNG = Slot{Path: "dataset.transform.transforms[2].rng", Owner: "__main__.Noise", Role: "transform", Line: 41}
	ownRNG     = Slot{Path: "dataset.rng", Owner: "__main__.Points", Role: "dataset", Line: 12}
	localRNG   = Slot{Path: "iterator<local jitter>", Role: "iterator", Line: 17}
	moduleRNG  = Slot{Path: "aug.COIN", Owner: "aug", Role: "module"}
	collateRNG = Slot{Path: "collate_fn.keywords['rng']", Owner: "functools.partial", Role: "collate"}
	numpyRNG   = Slot{Path: "numpy", Role: "global"}
	randomRNG  = Slot{Path: "random", Role: "global"}
	torchRNG   = Slot{Path: "torch", Role: "global"}
	orderRNG   = Slot{Path: "dataset.shuffle.rng", Role: "order"}
	cvRNG      = Slot{Path: "cv2", Role: "global"}
)

// draw n words of each generator.
func draw(n int) func(pass, worker, window int, g []*Gen) {
	return func(_, _, _ int, gens []*Gen) {
		for _, g := range gens {
			g.Draw(n)
		}
	}
}

// same state in every worker of every pass.
func same(g ...func() *Gen) func(pass, worker int) []*Gen {
	return func(int, int) []*Gen {
		var out []*Gen
		for _, make := range g {
			out = append(out, make())
		}
		return out
	}
}

// seeded by pass and worker.
func seeded(make func(seed uint32) *Gen, seed func(pass, worker int) int) func(pass, worker int) []*Gen {
	return func(pass, worker int) []*Gen { return []*Gen{make(uint32(seed(pass, worker)))} }
}

// fixed is samples on which nothing random has an effect.
func fixed(_ int, index int64) What { return What{Content: fmt.Sprint(index)} }

func apart(pass, worker int) int { return 1 + 100*pass + worker }

func pcg32(seed uint32) *Gen { return PCG(uint64(seed)) }

// train plays passes of one loader in one process, and seals.
func train(l Loader, passes ...Pass) func(*Run) {
	return func(r *Run) {
		o := r.Process(-1, 0).Open(l)
		for _, p := range passes {
			o.Pass(p)
		}
		r.Seal()
	}
}

var programs = []program{
	// The bugs.
	{"object copied into each worker of each pass", train(Loader{Workers: 2, Slots: []Slot{datasetRNG}, Fetch: draw(37),
		Start: same(func() *Gen { return PCG(17) })}, Train, Train, Train),
		map[string]string{"workers": "proven", "epochs": "proven", "ranks": "not-applicable one rank"}},
	{"object, persistent workers", train(Loader{Workers: 2, Persistent: true, Slots: []Slot{datasetRNG}, Fetch: draw(37),
		Start: same(func() *Gen { return PCG(17) })}, Train, Train),
		map[string]string{"workers": "proven", "epochs": "clean"}},
	{"RandomState in a partial", train(Loader{Workers: 3, Slots: []Slot{collateRNG}, Fetch: draw(1000),
		Start: same(func() *Gen { return MT(9) })}, Train, Train),
		map[string]string{"workers": "proven", "epochs": "proven"}},
	{"np.random seeded alike, as before torch 1.9", train(Loader{Workers: 2, Slots: []Slot{numpyRNG}, Fetch: draw(900), Init: "__main__.same",
		Start: same(func() *Gen { return MT(2024) })}, Train, Train),
		map[string]string{"workers": "proven", "epochs": "proven"}},
	{"module, spawned, persistent", train(Loader{Workers: 2, Persistent: true, Slots: []Slot{moduleRNG}, Fetch: draw(40),
		Start: same(func() *Gen { return Python(5) })}, Train, Train),
		map[string]string{"workers": "proven", "epochs": "clean"}},
	{"seed + epoch + worker", train(Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29),
		Start: seeded(MT, func(pass, worker int) int { return 400 + pass + worker })}, Train, Train, Train),
		map[string]string{"workers": "clean", "epochs": "proven"}},
	{"seed + worker", train(Loader{Workers: 2, Slots: []Slot{numpyRNG}, Fetch: draw(29),
		Start: seeded(MT, func(_, worker int) int { return 42 + worker })}, Train, Train),
		map[string]string{"workers": "clean", "epochs": "proven"}},
	{"Philox, SFC64 and PCG64DXSM", train(Loader{Workers: 2, Slots: []Slot{{Path: "dataset.a", Role: "dataset"}, {Path: "dataset.b", Role: "dataset"}, {Path: "dataset.c", Role: "dataset"}}, Fetch: draw(31),
		Start: same(func() *Gen { return Philox(1) }, func() *Gen { return SFC(1) }, func() *Gen { return DXSM(1) })}, Train),
		map[string]string{"workers": "proven", "epochs": "cannot-tell one pass"}},
	{"OpenCV, never seeded", train(Loader{Workers: 2, Slots: []Slot{cvRNG}, Fetch: draw(100), Start: same(func() *Gen { return CV2(-1) })}, Train),
		map[string]string{"workers": "proven", "epochs": "cannot-tell"}},
	{"other fetches, same stream: one worker draws twice as much", train(Loader{Workers: 2, Slots: []Slot{numpyRNG},
		Start: same(func() *Gen { return MT(3) }),
		Fetch: func(_, worker, _ int, g []*Gen) { g[0].Draw(700 + 700*worker) }}, Train),
		map[string]string{"workers": "proven"}},
	{"one stream cut into parts that overlap", train(Loader{Workers: 3, Slots: []Slot{numpyRNG}, Fetch: draw(1000),
		Start: func(_, worker int) []*Gen {
			g := MT(8)
			g.Draw(3900 * worker) // each worker draws 4000
			return []*Gen{g}
		}}, Train), map[string]string{"workers": "proven"}},
	{"the same for PCG64 with half words", train(Loader{Workers: 3, Slots: []Slot{datasetRNG}, Fetch: draw(29),
		Start: func(_, worker int) []*Gen {
			g := PCG(8)
			g.Draw(113 * worker) // each draws 116
			return []*Gen{g}
		}}, Train), map[string]string{"workers": "proven"}},
	{"the same for SFC64", train(Loader{Workers: 3, Slots: []Slot{datasetRNG}, Fetch: draw(30),
		Start: func(_, worker int) []*Gen {
			g := SFC(8)
			g.Draw(116 * worker) // each draws 120
			return []*Gen{g}
		}}, Train), map[string]string{"workers": "proven"}},
	{"made by the first fetch with a constant seed", train(Loader{Workers: 2, Slots: []Slot{ownRNG}, Found: []int{0}, Fetch: draw(50), Batches: 5,
		Start: same(func() *Gen { return MT(1) })}, Train), map[string]string{"workers": "proven"}},
	{"main process seeds again for each epoch", train(Loader{Slots: []Slot{numpyRNG}, Fetch: draw(29), Start: same(func() *Gen { return MT(1) })}, Train, Train),
		map[string]string{"workers": "not-applicable no workers", "epochs": "proven"}},
	{"role unknown: no optimizer anywhere", train(Loader{Workers: 2, Slots: []Slot{datasetRNG}, Fetch: draw(29), Start: same(func() *Gen { return PCG(1) })}, Pass{}, Pass{}),
		map[string]string{"workers": "likely", "epochs": "likely"}},
	{"IterableDataset, a transform", train(Loader{Workers: 2, Iterable: true, Slots: []Slot{datasetRNG}, Fetch: draw(29), Start: same(func() *Gen { return PCG(1) })}, Train, Train),
		map[string]string{"workers": "likely", "epochs": "likely"}},
	{"IterableDataset, its own generator", train(Loader{Workers: 2, Iterable: true, Slots: []Slot{ownRNG}, Fetch: draw(29), Start: same(func() *Gen { return PCG(1) })}, Train, Train),
		map[string]string{"workers": "likely", "epochs": "likely"}},
	{"IterableDataset, a local of __iter__", train(Loader{Workers: 2, Iterable: true, Slots: []Slot{localRNG}, Found: []int{0}, Fetch: draw(1300), Start: same(func() *Gen { return Python(1) })}, Train, Train),
		map[string]string{"workers": "likely", "epochs": "likely"}},
	{"two generators, one of them fine", train(Loader{Workers: 2, Slots: []Slot{datasetRNG, numpyRNG}, Fetch: draw(29),
		Start: func(pass, worker int) []*Gen { return []*Gen{PCG(1), MT(uint32(apart(pass, worker)))} }}, Train),
		map[string]string{"workers": "proven"}},

	// Ranks.
	{"ranks with equal worker seeds", twoRanks("ddp", Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)}, false),
		map[string]string{"workers": "clean", "epochs": "clean", "ranks": "proven"}},
	{"ranks, main process", twoRanks("ddp", Loader{Slots: []Slot{ownRNG}, Fetch: draw(29), Start: func(pass, _ int) []*Gen {
		if pass > 0 {
			return nil
		}
		return []*Gen{PCG(30)}
	}}, false), map[string]string{"workers": "not-applicable no workers", "epochs": "clean", "ranks": "proven"}},
	{"ranks without a group", twoRanks("", Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)}, false),
		map[string]string{"ranks": "likely"}},
	{"ranks in a group of the program's own", twoRanks("group", Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)}, false),
		map[string]string{"ranks": "cannot-tell ranks draw the same numbers, and the program made process groups"}},
	{"ranks in a group of the program's own, seeded apart", twoRanks("group", Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)}, true),
		map[string]string{"ranks": "clean"}},
	{"ranks apart: tensor parallel", func(r *Run) {
		for rank := range 2 {
			p := r.Process(rank, 2)
			p.Group("ddp", int64(rank))
			p.Open(Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)}).Pass(Train)
		}
		r.Seal()
	}, map[string]string{"ranks": "not-applicable no two ranks"}},
	{"ranks that are not in the groups that they record", func(r *Run) {
		var open []*Opened
		for rank := range 2 {
			p := r.Process(rank, 4)
			p.Group("ddp", 2, 3)
			open = append(open, p.Open(Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)}))
		}
		for _, o := range open {
			o.Pass(Train)
		}
		r.Seal()
	}, map[string]string{"ranks": "likely"}},
	{"one rank of several was recorded", func(r *Run) {
		r.Process(1, 4).Open(Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)}).Pass(Train)
		r.Seal()
	}, map[string]string{"workers": "clean", "ranks": "cannot-tell of 4 ranks one was recorded"}},
	{"ranks that got the same samples", twoRanks("ddp", Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart),
		Indices: func(_, batch int) []int64 { return []int64{int64(batch), 99} }}, false),
		map[string]string{"ranks": "note cannot-tell the ranks got the same samples"}},
	{"ranks seeded apart", twoRanks("ddp", Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)}, true),
		map[string]string{"ranks": "clean"}},
	{"a loop that draws alike on both ranks (MixUp)", twoRanks("ddp", Loader{Slots: []Slot{numpyRNG},
		Start: func(pass, _ int) []*Gen {
			if pass > 0 {
				return nil
			}
			return []*Gen{MT(30)}
		},
		Loop: func(_, _ int, g []*Gen) { g[0].Draw(3) }}, false), map[string]string{"ranks": "cannot-tell nothing random"}},
	{"each rank has the workers' bug", twoRanks("ddp", Loader{Workers: 2, Slots: []Slot{datasetRNG}, Fetch: draw(28), Start: same(func() *Gen { return PCG(5) })}, true),
		map[string]string{"workers": "proven", "epochs": "proven", "ranks": "clean"}},

	// What only looks like it.
	{"seeded apart", train(Loader{Workers: 2, Slots: []Slot{numpyRNG}, Fetch: draw(900), Start: seeded(MT, apart)}, Train, Train),
		map[string]string{"workers": "clean", "epochs": "clean"}},
	{"seeded apart, others", train(Loader{Workers: 2, Slots: []Slot{datasetRNG}, Fetch: draw(29), Start: seeded(pcg32, apart)}, Train, Train),
		map[string]string{"workers": "clean", "epochs": "clean"}},
	{"one stream dealt out without an overlap", train(Loader{Workers: 3, Slots: []Slot{numpyRNG}, Fetch: draw(1000),
		Start: func(_, worker int) []*Gen {
			g := MT(8)
			g.Draw(4000 * worker)
			return []*Gen{g}
		}}, Train), map[string]string{"workers": "clean"}},
	{"equal states that nobody draws from", train(Loader{Workers: 2, Slots: []Slot{datasetRNG}, Start: same(func() *Gen { return PCG(1) })}, Train, Train),
		map[string]string{"workers": "cannot-tell nothing random", "epochs": "cannot-tell nothing random"}},
	{"only one worker draws", train(Loader{Workers: 2, Slots: []Slot{ownRNG}, Start: same(func() *Gen { return PCG(1) }),
		Fetch: func(_, worker, _ int, g []*Gen) { g[0].Draw(9 * (1 - worker)) }}, Train),
		map[string]string{"workers": "cannot-tell in one worker only"}},
	{"seeded by the first fetch", train(Loader{Workers: 2, Slots: []Slot{ownRNG}, Batches: 6, Start: same(func() *Gen { return PCG(1) }),
		Fetch: func(pass, worker, window int, g []*Gen) {
			if window == 0 {
				g[0].Set(PCG(uint64(100*pass + worker)))
			}
			g[0].Draw(50)
		}}, Train, Train), map[string]string{"workers": "clean", "epochs": "clean"}},
	{"seeded by the sample", train(Loader{Workers: 2, Slots: []Slot{randomRNG}, Batches: 6, Start: same(func() *Gen { return Python(1) }),
		Fetch: func(pass, worker, window int, g []*Gen) { g[0].Set(Python(uint64(2*window + worker))); g[0].Draw(5) }}, Train, Train),
		map[string]string{"workers": "cannot-tell seeded anew", "epochs": "cannot-tell seeded anew"}},
	{"seeded by the sample, in a few places only", train(Loader{Workers: 2, Slots: []Slot{randomRNG}, Batches: 9, Start: same(func() *Gen { return Python(1) }),
		Fetch: func(pass, worker, window int, g []*Gen) { g[0].Set(Python(7)); g[0].Draw(5 + (window*5+worker)%7) }}, Train, Train),
		map[string]string{"workers": "cannot-tell seeded anew", "epochs": "cannot-tell seeded anew"}},
	{"retry jitter", train(Loader{Workers: 2, Slots: []Slot{randomRNG}, Batches: 6, Start: same(func() *Gen { return Python(1) }),
		Fetch: func(_, _, window int, g []*Gen) {
			if window == 3 {
				g[0].Draw(4)
			}
		}}, Train, Train), map[string]string{"workers": "note", "epochs": "note"}},
	{"drawn from in less than half of the fetches of one worker", train(Loader{Workers: 2, Slots: []Slot{randomRNG}, Batches: 6, Start: same(func() *Gen { return Python(1) }),
		Fetch: func(_, worker, window int, g []*Gen) {
			if window%(2+2*worker) == 1 {
				g[0].Draw(30)
			}
		}}, Train, Train), map[string]string{"workers": "proven", "epochs": "proven"}},
	{"a salt: the samples are the same whatever was drawn", train(Loader{Workers: 2, Slots: []Slot{ownRNG}, Fetch: draw(40), Contains: fixed,
		Start: same(func() *Gen { return PCG(1) })}, Train, Train, Train), map[string]string{"workers": "cannot-tell samples were the same", "epochs": "cannot-tell samples were the same"}},
	{"a salt, and a bug beside it", train(Loader{Workers: 2, Slots: []Slot{collateRNG, ownRNG}, Fetch: draw(40), Contains: fixed,
		Start: same(func() *Gen { return MT(1) }, func() *Gen { return PCG(1) })}, Train, Train), map[string]string{"workers": "proven", "epochs": "proven"}},
	{"hardly anything is drawn, in one pass", train(Loader{Workers: 2, Slots: []Slot{ownRNG}, Fetch: draw(8), Start: same(func() *Gen { return PCG(1) })}, Train),
		map[string]string{"workers": "likely"}},
	{"a source that nobody watches", train(Loader{Workers: 2, Slots: []Slot{torchRNG}, Start: seeded(MT, apart), Fetch: func(_, _, window int, g []*Gen) { g[0].Draw(60 * (window % 2)) },
		Contains: func(pass int, index int64) What { return What{Content: fmt.Sprint(pass, index)} }}, Train, Train),
		map[string]string{"workers": "cannot-tell a random source that it does not see", "epochs": "cannot-tell a random source that it does not see"}},
	{"a flip, and a source that nobody watches", train(Loader{Workers: 2, Batches: 8, Slots: []Slot{torchRNG}, Start: seeded(MT, apart), Fetch: draw(8)}, Train, Train),
		map[string]string{"workers": "cannot-tell a random source that dptrace does not see"}},
	{"a flip alone", train(Loader{Workers: 2, Batches: 8, Slots: []Slot{torchRNG}, Start: seeded(MT, apart), Fetch: draw(8),
		Contains: func(pass int, index int64) What { return What{Content: fmt.Sprint(index, (pass*int(index)/3)%2)} }}, Train, Train),
		map[string]string{"workers": "clean", "epochs": "clean"}},
	{"one augmentation for each clip", train(Loader{Workers: 2, Batches: 20, Slots: []Slot{ownRNG}, Start: same(func() *Gen { return PCG(1) }), Fetch: func(pass, worker, window int, g []*Gen) {
		if window%10 == 0 {
			g[0].Set(PCG(uint64(40 + window/10)))
		}
		g[0].Draw(50)
	}}, Train, Train), map[string]string{"workers": "likely", "epochs": "likely"}},
	{"a fixed synthetic data set, made anew in each pass", train(Loader{Workers: 1, Slots: []Slot{ownRNG}, Fetch: draw(50), Start: same(func() *Gen { return PCG(1) }),
		Indices: func(_, batch int) []int64 { return Ascending(8, 8*batch, 1) }}, Train, Train), map[string]string{"epochs": "likely"}},
	{"seeded alike in each call, beside one that is fine", train(Loader{Workers: 2, Slots: []Slot{numpyRNG, torchRNG},
		Start: func(pass, worker int) []*Gen {
			return []*Gen{MT(uint32(apart(pass, worker))), MT(uint32(5000 + apart(pass, worker)))}
		},
		Fetch: func(_, _, _ int, g []*Gen) { g[0].Set(MT(42)); g[0].Draw(20); g[1].Draw(50) }}, Train, Train),
		map[string]string{"workers": "cannot-tell seeded to the same numbers in each call", "epochs": "cannot-tell seeded to the same numbers in each call"}},
	{"a stream that all workers shuffle alike before each takes its share", train(Loader{Workers: 3, Iterable: true, Batches: 8, Slots: []Slot{ownRNG}, Start: same(func() *Gen { return PCG(1) }),
		Fetch: func(_, worker, window int, g []*Gen) {
			if window == 0 {
				g[0].Draw(2 * worker)
			}
			g[0].Draw(48)
		}}, Train, Train), map[string]string{"workers": "cannot-tell the order of the samples", "epochs": "cannot-tell the order of the samples"}},
	{"an order stream", train(Loader{Workers: 2, Slots: []Slot{orderRNG}, Fetch: draw(29), Start: same(func() *Gen { return PCG(1) })}, Train, Train),
		map[string]string{"workers": "cannot-tell nothing random"}},
	{"one permutation for all workers", train(Loader{Workers: 2, Iterable: true, Slots: []Slot{ownRNG}, Start: same(func() *Gen { return PCG(1) }),
		Fetch: func(_, _, window int, g []*Gen) {
			if window == 0 {
				g[0].Draw(64)
			}
		}}, Train, Train), map[string]string{"workers": "cannot-tell before the first sample", "epochs": "cannot-tell before the first sample"}},
	{"two trials with one seed", train(Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, func(pass, worker int) int { return 7 + 100*(pass%2) + worker })},
		Pass{Optimizer: 1}, Pass{Optimizer: 1}, Pass{Optimizer: 2}, Pass{Optimizer: 2}), map[string]string{"workers": "clean", "epochs": "clean"}},
	{"fixed validation", func(r *Run) {
		p := r.Process(-1, 0)
		t := p.Open(Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)})
		v := p.Open(Loader{Workers: 2, Line: 90, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, func(_, w int) int { return 990 + w })})
		for range 2 {
			t.Pass(Train)
			v.Pass(Pass{})
		}
		r.Seal()
	}, map[string]string{"workers": "clean", "epochs": "clean", "2 workers": "clean", "2 epochs": "note"}},
	{"a look at one batch", train(Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, func(pass, w int) int { return 1 + w + 100*max(pass, 1) })},
		Pass{Break: 1, Optimizer: 1}, Train, Pass{Break: 2}), map[string]string{"epochs": "cannot-tell no two passes"}},
	{"passes of one length that all break", train(Loader{Workers: 2, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, func(_, w int) int { return 1 + w })},
		Pass{Break: 6, Optimizer: 1}, Pass{Break: 6, Optimizer: 1}), map[string]string{"epochs": "proven"}},
	{"two loaders of one line side by side", func(r *Run) {
		p := r.Process(-1, 0)
		l := Loader{Workers: 2, Slots: []Slot{numpyRNG}, Fetch: draw(29), Start: seeded(MT, apart)}
		a, b := p.Open(l), p.Open(l)
		for range 2 {
			a.Pass(Train)
			b.Pass(Train)
		}
		r.Seal()
	}, map[string]string{"workers": "clean", "epochs": "clean", "2 workers": "clean", "2 epochs": "clean"}},
	{"a loader made anew for each epoch", func(r *Run) {
		p := r.Process(-1, 0)
		for range 3 {
			p.Open(Loader{Workers: 2, Slots: []Slot{numpyRNG}, Fetch: draw(29), Start: same(func() *Gen { return MT(3) })}).Pass(Train)
		}
		r.Seal()
	}, map[string]string{"workers": "proven", "epochs": "proven"}},
	{"image and mask", train(Loader{Workers: 2, Slots: []Slot{{Path: "dataset.image", Role: "dataset"}, {Path: "dataset.mask", Role: "dataset"}}, Fetch: draw(29),
		Start: func(pass, worker int) []*Gen {
			return []*Gen{PCG(uint64(apart(pass, worker))), PCG(uint64(apart(pass, worker)))}
		}}, Train, Train),
		map[string]string{"workers": "note", "epochs": "clean"}},
	{"one worker", train(Loader{Workers: 1, Slots: []Slot{torchRNG}, Fetch: draw(29), Start: seeded(MT, apart)}, Train, Train),
		map[string]string{"workers": "not-applicable one worker", "epochs": "clean"}},

	// Gaps.
	{"clean, but records were lost", train(Loader{Workers: 2, Slots: []Slot{numpyRNG}, Fetch: draw(29), Start: seeded(MT, apart)}, Train, Pass{Optimizer: 1, LostRows: true}),
		map[string]string{"workers": "cannot-tell records were lost", "epochs": "cannot-tell records were lost"}},
	{"found, although records were lost", train(Loader{Workers: 2, Slots: []Slot{numpyRNG}, Fetch: draw(29), Start: same(func() *Gen { return MT(1) })}, Train, Pass{Optimizer: 1, LostRows: true}),
		map[string]string{"workers": "proven", "epochs": "proven"}},
	{"the main process lost records: its loop may have drawn", train(Loader{Slots: []Slot{numpyRNG}, Fetch: draw(29), Start: same(func() *Gen { return MT(1) })}, Train, Pass{Optimizer: 1, LostRows: true}),
		map[string]string{"epochs": "cannot-tell records were lost"}},
	{"clean, but cut", func(r *Run) {
		o := r.Process(-1, 0).Open(Loader{Workers: 2, Slots: []Slot{numpyRNG}, Fetch: draw(29), Start: seeded(MT, apart)})
		o.Pass(Train)
	}, map[string]string{"workers": "cannot-tell the recording was cut"}},
}

// twoRanks plays a loader on two ranks; op "" sees no group of theirs.
func twoRanks(op string, l Loader, seedByRank bool) func(*Run) {
	return func(r *Run) {
		var open []*Opened
		for rank := range 2 {
			p := r.Process(rank, 2)
			if op != "" {
				p.Group(op, 0, 1)
			}
			mine := l
			mine.Start = func(pass, worker int) []*Gen {
				g := l.Start(pass, worker)
				if seedByRank {
					for i := range g {
						if rank > 0 && g[i].Kind == "mt19937" {
							g[i].Set(MT(uint32(5000 + 100*pass + worker)))
						} else if rank > 0 {
							g[i].Set(PCG(5000))
						}
					}
				}
				return g
			}
			open = append(open, p.Open(mine))
		}
		for range 2 {
			for _, o := range open {
				o.Pass(Train)
			}
		}
		r.Seal()
	}
}

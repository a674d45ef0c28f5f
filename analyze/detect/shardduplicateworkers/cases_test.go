package shardduplicateworkers_test

import (
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/shardduplicateworkers"
	"github.com/dptrace/dptrace/traces"
)

// read is samples with contents first, first+step, ...
func read(n, first, step int) (list []Sample) {
	for i := range n {
		list = append(list, Sample{Content: fmt.Sprint("sample ", first+i*step)})
	}
	return list
}

// with changes each of some samples.
func with(samples []Sample, change func(i int, s *Sample)) []Sample {
	for i := range samples {
		change(i, &samples[i])
	}
	return samples
}

func unlooked(from int) func(int, *Sample) {
	return func(i int, s *Sample) {
		if i >= from {
			s.Content = ""
		}
	}
}

func join(parts ...[]Sample) (all []Sample) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// augmented is samples whose contents are other ones in each worker, with a text
// that stays.
func augmented(worker, n int, text func(i int) string, kind byte) []Sample {
	return with(read(n, 1000*worker, 1), func(i int, s *Sample) { s.Text, s.Kind = text(i), kind })
}

// mixed is n samples from first on, in a random order, of which the first ones
// were looked at.
func mixed(n, first, looked int, seed uint64) (list []Sample) {
	for _, i := range Shuffled(n, seed) {
		list = append(list, Sample{Content: fmt.Sprint("sample ", first+int(i))})
	}
	return with(list, unlooked(looked))
}

func TestCases(t *testing.T) {
	opened := func(r *Run) {
		for proc := uint32(2); proc <= 3; proc++ {
			for _, path := range []string{"/data/vessel0.npy", "/data/vessel1.npy"} {
				r.Add(proc, traces.Opened{Path: path, Source: "fd"})
			}
		}
	}
	drew := func(r *Run) { r.Add(2, traces.RngState{When: "after"}) }
	var stream *Server
	var workers [][]Sample
	again := func(*Run) { stream.Stream(Train, workers...) }
	anew := func(*Run) { stream.Stream(Train, read(40, 1000, 2), read(40, 1001, 2)) }
	named := func(i int) string { return fmt.Sprint("file ", i) }
	for _, c := range []struct {
		name    string
		dataset string
		workers [][]Sample
		how     Pass
		more    func(*Run)
		want    string
		says    []string
	}{
		{"each reads everything", "", [][]Sample{read(40, 0, 1), read(40, 0, 1)}, Train, opened, "proven",
			[]string{"Every sample is delivered 2 times: both workers read all of Tracks", "80 samples were delivered, 40 of them different", "40 of 40 (100 %) positions", "2 files: vessel0.npy and vessel1.npy", "info.num_workers", "what __iter__ yields now"}},
		{"all three", "", [][]Sample{read(40, 0, 1), read(40, 0, 1), read(40, 0, 1)}, Train, nil, "proven", []string{"delivered 3 times: all 3 workers"}},
		{"two of three", "", [][]Sample{read(40, 0, 1), read(40, 0, 1), read(40, 500, 1)}, Train, nil, "proven", []string{"Workers 0 and 1 read the same samples of Tracks"}},
		{"the first ones were looked at, both came to an end", "", [][]Sample{with(read(80, 0, 1), unlooked(32)), with(read(80, 0, 1), unlooked(32))}, Train, nil, "proven", []string{"32 of 32"}},
		{"in an order of its own", "", [][]Sample{read(40, 0, 1), read(40, 39, -1)}, Train, nil, "proven", []string{"are among those of worker 1", "before it is shuffled", "islice(source,", "not:yields now"}},
		{"one reads a part of what the other reads", "", [][]Sample{read(12, 8, 1), read(40, 0, 1)}, Train, nil, "proven", []string{"12 of 12"}},
		{"evaluation", "", [][]Sample{read(40, 0, 1), read(40, 0, 1)}, Eval, nil, "proven", nil},

		{"one file of several", "", [][]Sample{join(read(20, 0, 1), read(12, 100, 1)), join(read(30, 200, 1), read(12, 100, 1))}, Train, nil, "note", []string{"12 samples of Tracks come from several workers, of 62", "12 in a row", "from position 20 of worker 0, and 30 of worker 1"}},
		{"each reads everything, in an order of its own, a part was looked at", "", [][]Sample{mixed(300, 0, 60, 1), mixed(300, 0, 60, 2), mixed(300, 0, 60, 3)}, Train, nil, "likely",
			[]string{"All 3 workers read the same samples of Tracks, each in an order of its own", "of 360 samples that were looked at", "36 are expected", "900 samples were delivered, 300 of them different", "before it is shuffled"}},
		{"a share each, mixed", "", [][]Sample{mixed(300, 0, 60, 1), mixed(300, 300, 60, 2)}, Train, again, "cannot-tell", []string{"240 of 1,200 samples were looked at", "--digest full"}},
		{"a share each, of rows that come several times", "", [][]Sample{with(mixed(300, 0, 60, 1), func(i int, s *Sample) {
			if i < 20 {
				s.Content = fmt.Sprint("common ", i%14)
			}
		}), with(mixed(300, 300, 60, 2), func(i int, s *Sample) {
			if i < 20 {
				s.Content = fmt.Sprint("common ", (i+5)%14)
			}
		})}, Train, again, "cannot-tell", []string{"14 samples came from several workers"}},
		{"broken off, the beginnings agree", "", [][]Sample{with(read(80, 0, 1), unlooked(16)), with(read(80, 0, 1), unlooked(16))}, Pass{Optimizer: 1, Break: 10}, nil, "likely", nil},
		{"pieces of contents", "", [][]Sample{with(read(40, 0, 1), func(_ int, s *Sample) { s.Kind = 2 }), with(read(40, 0, 1), func(_ int, s *Sample) { s.Kind = 2 })}, Train, nil, "likely", []string{"pieces"}},
		{"augmented, with names", "", [][]Sample{augmented(0, 40, named, 1), augmented(1, 40, named, 1)}, Train, nil, "likely", []string{"texts"}},
		{"all shards of webdataset", "webdataset.compat.WebDataset", [][]Sample{read(40, 0, 1), read(40, 0, 1)}, Train, nil, "proven", []string{"split_by_worker"}},
		{"dealt to the ranks by accelerate", "accelerate.data_loader.IterableDatasetShard", [][]Sample{read(40, 0, 1), read(40, 0, 1)}, Train, nil, "proven", []string{"in __iter__ of your dataset"}},

		{"a share each", "", [][]Sample{read(40, 0, 2), read(40, 1, 2)}, Train, again, "clean", []string{"2 workers in 2 passes: 160 samples"}},
		{"a share each, in one pass", "", [][]Sample{read(40, 0, 2), read(40, 1, 2)}, Train, nil, "cannot-tell", []string{"in one pass", "drawn anew"}},
		{"a share each, and a second pass of other contents", "", [][]Sample{read(40, 0, 2), read(40, 1, 2)}, Train, anew, "cannot-tell",
			[]string{"came again in another pass"}},
		{"one sample at each seam", "", [][]Sample{read(21, 0, 1), read(21, 20, 1), read(20, 40, 1)}, Train, again, "proven",
			[]string{"1 sample at the end of each worker's share of Tracks is the beginning of the next one's", "2 of 60 samples count twice", "Of 62 samples that were delivered in this pass 62 were looked at. 60 of these are different", "no \"+ 1\""}},
		{"one sample at the only seam", "", [][]Sample{read(21, 0, 1), read(20, 20, 1)}, Train, again, "likely", []string{"1 sample at the end", "1 of 40", "list a file several times"}},
		{"a last sample that is the first one: padded", "", [][]Sample{read(21, 20, 1), read(21, 0, 1)}, Train, again, "cannot-tell", []string{"1 sample came from several workers"}},
		{"one sample at the seam of one pass of two", "", [][]Sample{read(21, 0, 1), read(20, 20, 1)}, Train, func(r *Run) {
			stream.Stream(Train, read(20, 0, 1), read(20, 20, 1))
		}, "cannot-tell", []string{"1 sample came from several workers"}},
		{"two rounds, dealt out in turns", "", [][]Sample{join(read(20, 0, 2), read(19, 1, 2)), join(read(19, 1, 2), read(20, 0, 2))}, Train, nil, "likely", []string{"gone through several times"}},
		{"a share each, some rows are equal in the data", "", [][]Sample{join(read(7, 0, 1), read(33, 100, 1)), join(read(7, 0, 1), read(33, 300, 1))}, Train, again, "cannot-tell", []string{"7 samples came from several workers"}},
		{"next to nothing in them", "", [][]Sample{with(read(40, 0, 1), func(_ int, s *Sample) { s.Kind = 5 }), with(read(40, 0, 1), func(_ int, s *Sample) { s.Kind = 5 })}, Train, nil, "cannot-tell", []string{"fewer than 8"}},
		{"some of it could not be read", "", [][]Sample{with(read(40, 0, 1), func(_ int, s *Sample) { s.Kind = 33 }), with(read(40, 0, 1), func(_ int, s *Sample) { s.Kind = 33 })}, Train, nil, "cannot-tell", []string{"fewer than 8"}},
		{"shards of webdataset begin alike", "webdataset.compat.WebDataset", [][]Sample{with(read(80, 0, 1), unlooked(32)), with(read(80, 0, 1), unlooked(32))}, Train, nil, "cannot-tell", []string{"by chance"}},
		{"augmented, each counts its samples", "", [][]Sample{with(augmented(0, 40, named, 17), func(_ int, s *Sample) { s.Text = "" }), with(augmented(1, 40, named, 17), func(_ int, s *Sample) { s.Text = "" })}, Train, drew, "cannot-tell", []string{"draw random numbers"}},
		{"augmented, with the names of few classes", "", [][]Sample{augmented(0, 40, func(i int) string { return fmt.Sprint(i % 4) }, 1), augmented(1, 40, func(i int) string { return fmt.Sprint(i % 4) }, 1)}, Train, drew, "cannot-tell", []string{"draw random numbers"}},
		{"one worker", "", [][]Sample{read(40, 0, 1)}, Train, nil, "not-applicable", []string{"no two workers"}},
		{"a worker that nobody watched", "", [][]Sample{read(40, 0, 3), read(40, 1, 3), read(40, 2, 3)}, Train, func(r *Run) {
			r.Add(4, traces.Process{Hook: "off"})
		}, "cannot-tell", []string{"1 of 3 workers could not be watched"}},
		{"one worker delivers", "", [][]Sample{read(40, 0, 1), nil}, Train, nil, "not-applicable", nil},

		{"they repeat", "", [][]Sample{join(read(16, 0, 1), read(16, 0, 1)), join(read(16, 0, 1), read(16, 0, 1))}, Train, nil, "cannot-tell", []string{"more than once themselves"}},
		{"resampled", "lib.ResampledTracks", [][]Sample{read(40, 0, 1), read(40, 0, 1)}, Train, nil, "cannot-tell", []string{"by its name"}},
		{"webdataset, resampled", "webdataset.compat.WebDataset", [][]Sample{read(40, 0, 1), read(40, 0, 1)}, Train, func(r *Run) {
			r.Add(2, traces.RngSlot{Path: "dataset.pipeline[0].rng", Owner: "webdataset.shardlists.ResampledShards"})
		}, "cannot-tell", []string{"by its name"}},
		{"too few", "", [][]Sample{read(7, 0, 1), read(7, 0, 1)}, Train, nil, "cannot-tell", []string{"fewer than 8"}},
		{"lost", "", [][]Sample{read(40, 0, 2), read(40, 1, 2)}, Train, func(r *Run) { r.Lost("hook", "digest", 3) }, "cannot-tell", []string{"lost"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			if c.dataset == "" {
				c.dataset = "__main__.Tracks"
			}
			o := run.Process(-1, 0).Serve(Serve{Dataset: c.dataset, Iterable: true, Workers: len(c.workers), Length: -1})
			o.Stream(c.how, c.workers...)
			stream, workers = o, c.workers
			if c.more != nil {
				c.more(run)
			}
			run.Seal()
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, shardduplicateworkers.Rule.ID, c.want, c.says)
		})
	}
}

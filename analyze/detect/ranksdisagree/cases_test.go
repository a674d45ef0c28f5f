package ranksdisagree_test

import (
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/ranksdisagree"
	"github.com/dptrace/dptrace/traces"
)

const deals = "torch.utils.data.distributed.DistributedSampler"

// played is two ranks, each with a sampler that deals out to both.
type played struct {
	length   int64  // of the dataset that all have; 0: 96
	other    int64  // of rank 1
	known    bool   // it is recorded
	class    string // of the dataset; "" is __main__.Images
	sampler  string
	samplers string
	seeds    [2]int64
	epochs   func(pass, rank int) int64
	straight bool // shuffle=False
	iterable bool
	lost     string // table of which records are
	batches  string // class of the batch sampler; "" is torch's
	replicas int64
	group    string // ddp if ""
	eval     bool
	open     bool // passes are broken off
	old      bool
	list     func(rank int) traces.Attribute // that hangs on the dataset
	what     func(rank, pass int, index int64) What
	own      []int64                           // a group that the program made
	drew     bool                              // numbers, in its fetches
	inside   func(rank int, index int64) int64 // of a Subset: the index in the dataset inside; what is by that one
}

func list(class string, ordered, unordered string) traces.Attribute {
	return traces.Attribute{Path: "dataset.files", Class: class, Items: 96, Whole: true, Ordered: []byte(ordered), Unordered: []byte(unordered), File: "/home/me/proj/data.py", Line: 12}
}

// each rank's order is its own.
func listed(rank int) traces.Attribute {
	return list("builtins.list", fmt.Sprint("order ", rank), "the same")
}

func agreed(int) traces.Attribute { return list("builtins.list", "order", "the same") }

func (c *played) play(r *Run) {
	if c.length == 0 {
		c.length = 96
	}
	ranks := []*Process{r.Process(0, 2), r.Process(1, 2)} // side by side
	for rank, p := range ranks {
		c.rank(r, p, rank)
	}
	if c.lost != "" {
		r.Lost("hook", c.lost, 3)
	}
	r.Seal()
}

func (c *played) rank(r *Run, p *Process, rank int) {
	if c.group == "" {
		p.Group("ddp", 0, 1)
	}
	if c.group == "apart" {
		r.Add(p.Proc, traces.Dist{Op: "ddp", Ranks: []int64{int64(rank)}})
	}
	if c.own != nil {
		r.Add(p.Proc, traces.Dist{Op: "group", Ranks: c.own})
	}
	n := c.length
	if rank == 1 && c.other > 0 {
		n = c.other
	}
	o := traces.Loader{Loader: 1, Length: -1, BatchSize: 8, DatasetClass: "__main__.Images", DatasetID: 3, Batched: "yes", Sampler: deals, BatchSampler: "torch.utils.data.sampler.BatchSampler", Shuffle: "yes",
		SamplerRank: int64(rank), SamplerReplicas: 2, SamplerSeed: c.seeds[rank], SamplerTotal: (n + 1) / 2 * 2, File: "/home/me/proj/train.py", Line: 88, Samplers: c.samplers}
	if c.sampler != "" {
		o.Sampler = c.sampler
	}
	if c.class != "" {
		o.DatasetClass, o.DatasetID = c.class, 0
	}
	if c.sampler == "none" {
		o.Sampler, o.SamplerReplicas, o.SamplerTotal, o.SamplerRank = "torch.utils.data.sampler.RandomSampler", -1, 0, -1
	}
	if c.replicas > 0 {
		o.SamplerReplicas = c.replicas
	}
	if c.known {
		o.Length = n
	}
	o.Iterable = c.iterable
	if c.batches != "" {
		o.BatchSampler = c.batches
	}
	if c.old {
		o.Batched = ""
	}
	if c.straight {
		o.Shuffle = "no"
	}
	r.Add(p.Proc, o)
	if c.list != nil {
		a := c.list(rank)
		a.Loader, a.Worker, a.When, a.Dataset = 1, -1, "rank", 3
		r.Add(p.Proc, a)
	}
	if c.drew {
		r.Add(p.Proc, traces.RngState{When: "after"})
	}
	for pass := range 2 {
		c.pass(r, p.Proc, rank, pass, int(n))
	}
}

func (c *played) pass(r *Run, proc uint32, rank, pass, n int) {
	epoch := int64(pass)
	if c.epochs != nil {
		epoch = c.epochs(pass, rank)
	}
	r.Add(proc, traces.Pass{Loader: 1, Pass: uint32(pass), Phase: "begin", SamplerEpoch: epoch})
	order := Shuffled(n, uint64(c.seeds[rank]+epoch))
	if c.straight {
		order = Ascending(n, 0, 1)
	}
	order = append(order, order[:n%2]...)
	var mine []int64
	for i := rank; i < len(order); i += 2 {
		mine = append(mine, order[i])
	}
	batch, steps := uint32(0), uint64(100*pass)
	for at := 0; at < len(mine); at += 8 {
		indices := mine[at:min(at+8, len(mine))]
		put := traces.BatchPut{Loader: 1, Pass: uint32(pass), Batch: batch, Worker: -1, Indices: indices}
		if c.inside != nil {
			for _, index := range indices {
				put.IDs = append(put.IDs, 3<<40|c.inside(rank, index))
			}
		}
		r.Add(proc, put)
		if c.what != nil {
			r.Add(proc, Digest(traces.Digest{Loader: 1, Pass: uint32(pass), Worker: -1, Batch: batch, Fetch: batch}, indices, func(index int64) What {
				if c.inside != nil {
					index = c.inside(rank, index)
				}
				return c.what(rank, pass, index)
			}))
		}
		r.Add(proc, traces.BatchFetch{Loader: 1, Pass: uint32(pass), Worker: -1, Batch: batch, Fetch: batch, Samples: int32(len(indices))},
			traces.BatchNext{Loader: 1, Pass: uint32(pass), Batch: batch, Worker: -1, Status: "ok", Steps: steps, Optimizer: 1, Grad: !c.eval})
		batch++
		if !c.eval {
			steps++
		}
	}
	end := "dropped"
	if !c.open {
		end = "exhausted"
		r.Add(proc, traces.BatchNext{Loader: 1, Pass: uint32(pass), Batch: batch, Worker: -1, Status: "stop", Steps: steps, Grad: !c.eval})
	}
	r.Add(proc, traces.Pass{Loader: 1, Pass: uint32(pass), Phase: "end", End: end, Delivered: batch})
}

func moved(rank, _ int, index int64) What { return Numbered(Shuffled(96, uint64(rank))[index]) }

// mix is some other number for each.
func mix(x uint64) uint64 { return x * 0x9e3779b97f4a7c15 >> 40 }

func one(_, _ int, index int64) What { return Numbered(index) }

const subset = "torch.utils.data.dataset.Subset"

// split is the part of 120 samples that a rank has drawn by itself, or all with
// one seed.
func split(seed uint64) func(rank int, index int64) int64 {
	return func(rank int, index int64) int64 { return Shuffled(120, seed*uint64(1+rank))[index] }
}

// augmented samples, of a process whose fetches draw random numbers.
func augmented(rank, pass int, index int64) What {
	return Numbered(index + 1000*int64(10*rank+pass))
}

var cases = []struct {
	name string
	play played
	want string
	says []string
}{
	{"seeds", played{seeds: [2]int64{7, 8}, list: agreed}, "proven", []string{"shuffle by different seeds", "of 96 samples are on no rank in pass 0", "rank 0 7 and rank 1 8", "so in 2 passes", "not SEED + rank"}},
	{"seeds, samples that are hardly asked for", played{length: 9, seeds: [2]int64{7, 9}, list: func(int) traces.Attribute { a := agreed(0); a.Items = 9; return a }}, "proven", []string{"of 9 samples"}},
	{"seeds, and nobody knows whether it is one dataset", played{seeds: [2]int64{7, 8}}, "likely", []string{"each rank is meant to draw from data of its own"}},
	{"seeds, of data of its own", played{seeds: [2]int64{7, 8}, what: func(rank, _ int, index int64) What { return Numbered(1000*int64(rank) + index) }}, "likely", []string{"each rank is meant to draw from data of its own"}},
	{"seeds, by contents one dataset", played{seeds: [2]int64{7, 8}, what: one}, "proven", nil},
	{"set_epoch on one rank", played{epochs: func(pass, rank int) int64 { return int64(pass * (1 - rank)) }, list: agreed}, "proven", []string{"different epochs", "in pass 1", "rank 0 1 and rank 1 0", "set_epoch(epoch)", "so in 1 pass"}},
	{"files in another order", played{list: listed, what: moved}, "proven", []string{"dataset.files has the same 96 items in another order", "data.py:12", "sorted(self.files)", "25 %"}},
	{"an array in another order", played{list: func(rank int) traces.Attribute {
		a := listed(rank)
		a.Class, a.Items = "numpy.ndarray", 8*96
		return a
	}, what: moved}, "proven", []string{"the same values"}},
	{"files in another order, not shuffled", played{list: listed, straight: true, what: moved}, "proven", nil},
	{"a list of partners to mix with, each rank its own", played{list: listed, what: func(rank, _ int, index int64) What {
		return What{Content: fmt.Sprint(rank, " with ", index), Label: fmt.Sprint(index % 7)}
	}}, "likely", []string{"partners for mixing"}},
	{"files in another order, augmented", played{list: listed, what: augmented, drew: true}, "likely", []string{"not what an index stands for"}},
	{"lengths", played{other: 90, what: one}, "proven", []string{"different lengths: rank 0 96 and rank 1 90", "as the samplers count"}},
	{"lengths that are known", played{other: 95, known: true, what: one}, "proven", []string{"rank 0 96 and rank 1 95"}},
	{"another split on each rank", played{what: moved, class: "torch.utils.data.dataset.Subset"}, "proven", []string{"An index is another sample", "one split on all ranks", "manual_seed(0)"}},
	{"another sample at each index", played{what: moved}, "proven", []string{"An index is another sample on rank 1 than on rank 0", "under another index"}},

	{"another split on each rank, by the samples inside", played{what: one, class: subset, inside: split(1)}, "proven", []string{"different lists of one dataset: index 1 is sample", "both", "manual_seed(0)", "validation another may train on"}},
	{"another split on each rank, augmented", played{what: augmented, class: subset, inside: split(1), list: agreed, drew: true}, "likely", []string{"different lists of one dataset"}},

	{"lengths, of data of its own", played{other: 90, what: func(rank, _ int, index int64) What { return Numbered(1000*int64(rank) + index) }}, "likely", []string{"data of its own"}},
	{"no group seen", played{seeds: [2]int64{7, 8}, group: "none"}, "likely", []string{"It was not seen that the gradients"}},
	{"a class made from the sampler", played{seeds: [2]int64{7, 8}, sampler: "__main__.Balanced", samplers: "__main__.Balanced(torch.utils.data.distributed.DistributedSampler)"}, "likely", nil},
	{"evaluation", played{seeds: [2]int64{7, 8}, eval: true}, "note", nil},
	{"other labels at each index", played{what: func(rank, _ int, index int64) What {
		return What{Content: fmt.Sprint(rank, index), Label: fmt.Sprint(rank, "label", index)}
	}}, "likely", []string{"labels) differ"}},
	{"files of its own on each rank", played{list: func(rank int) traces.Attribute {
		return list("builtins.list", fmt.Sprint("order ", rank), fmt.Sprint("files ", rank))
	}}, "note", []string{"other items"}},
	{"a list that is no list of the samples", played{list: func(rank int) traces.Attribute {
		a := listed(rank)
		a.Items = 10
		return a
	}}, "note", nil},

	{"one split", played{what: one, class: subset, inside: split(0)}, "clean", nil},
	{"one split, augmented", played{what: augmented, class: subset, inside: split(0), list: agreed, drew: true}, "clean", nil},
	{"a part of its own on each rank", played{what: one, list: agreed, class: subset, inside: func(rank int, index int64) int64 { return 2*index + int64(rank) }}, "cannot-tell", []string{"hardly a sample in common"}},
	{"another split on each rank, of data of its own", played{what: func(rank, _ int, index int64) What { return Numbered(1000*int64(rank) + index) }, class: subset, inside: split(1)}, "cannot-tell", []string{"is not known"}},
	{"agreed", played{list: agreed}, "clean", []string{"2 ranks", "2 passes"}},
	{"agreed by contents", played{what: one}, "clean", nil},
	{"agreed, padded", played{length: 95, list: agreed}, "clean", nil},
	{"agreed, but contents are not known", played{}, "cannot-tell", []string{"is not known"}},
	{"a set", played{list: func(rank int) traces.Attribute { return list("builtins.set", fmt.Sprint("order ", rank), "the same") }}, "cannot-tell", nil},
	{"augmented alike in each pass, by the rank's own seed", played{list: agreed, what: func(rank, _ int, index int64) What {
		return What{Content: fmt.Sprint(rank, index), Label: fmt.Sprint(index % 7)}
	}}, "clean", nil},
	{"a list that the index does not go by", played{list: listed, what: one}, "clean", nil},
	{"augmented alike, of a few values", played{list: agreed, what: func(rank, _ int, index int64) What { return Numbered(int64(mix(uint64(100*index+int64(rank))) % 5)) }}, "clean", nil},
	{"augmented", played{list: agreed, what: func(rank, pass int, index int64) What { return Numbered(index + 1000*int64(10*rank+pass)) }}, "clean", nil},
	{"data of its own on each rank", played{sampler: "none", other: 90, seeds: [2]int64{7, 8}, list: listed}, "not-applicable", []string{"data of its own"}},
	{"an IterableDataset", played{seeds: [2]int64{7, 8}, iterable: true}, "not-applicable", []string{"IterableDataset"}},
	{"no two ranks of one training", played{seeds: [2]int64{7, 8}, group: "apart"}, "not-applicable", []string{"no two ranks whose gradients"}},
	{"batches that are dealt out by another library", played{sampler: "none", batches: "accelerate.data_loader.BatchSamplerShard", seeds: [2]int64{7, 8}}, "cannot-tell", []string{"data of its own"}},
	{"a sampler for one replica of several", played{replicas: 4, seeds: [2]int64{7, 8}}, "cannot-tell", []string{"for 4 ranks"}},
	{"the program's own group", played{seeds: [2]int64{7, 8}, group: "none", own: []int64{0, 1}}, "cannot-tell", []string{"groups of its own"}},
	{"broken off", played{seeds: [2]int64{7, 8}, open: true, list: agreed}, "cannot-tell", []string{"no pass came"}},
	{"lists are lost", played{list: agreed, lost: "attribute"}, "cannot-tell", []string{"lost"}},
	{"groups are lost", played{list: agreed, lost: "dist"}, "cannot-tell", []string{"lost"}},
	{"rows that say nothing about it are lost", played{list: agreed, lost: "memory"}, "clean", nil},
	{"an older hook", played{seeds: [2]int64{7, 8}, old: true}, "cannot-tell", []string{"not in the trace"}},
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
			Verdict(t, r.Findings, r.Checks, ranksdisagree.Rule.ID, c.want, c.says)
		})
	}
}

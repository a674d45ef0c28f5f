package shardduplicateranks_test

import (
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/shardduplicateranks"
	"github.com/dptrace/dptrace/traces"
)

// played is what each rank is given, in two passes.
type played struct {
	serve   Serve
	rank    func(rank int, s *Serve) // what differs
	ranks   int
	order   func(rank, pass int) []int64
	id      func(rank int, index int64) int64 // in the dataset inside; nil: the loader's own
	content func(rank int, index int64) string
	how     Pass
	groups  func(p *Process)
	more    func(r *Run, p *Process)
	anew    bool                      // the loader is made for each pass
	threads func(rank int) [][]Sample // of an IterableDataset: of each worker
}

func ddp(p *Process) { p.Group("ddp") }

// whole is the same shuffled order on all ranks; own: each rank its own.
func whole(_, pass int) []int64 { return Shuffled(40, uint64(pass)) }

func own(rank, pass int) []int64 { return Shuffled(40, uint64(10*rank+pass)) }

// dealt is what a DistributedSampler deals out: padded to as many on each rank.
func dealt(n, ranks int) func(rank, pass int) []int64 {
	return func(rank, pass int) (mine []int64) {
		order := Shuffled(n, uint64(pass))
		for len(order)%ranks != 0 {
			order = append(order, order[len(order)-n])
		}
		for i := rank; i < len(order); i += ranks {
			mine = append(mine, order[i])
		}
		return mine
	}
}

// once is the first pass alone.
func once(order func(rank, pass int) []int64) func(rank, pass int) []int64 {
	return func(rank, pass int) []int64 {
		if pass > 0 {
			return nil
		}
		return order(rank, pass)
	}
}

func fixed(_ int, index int64) string { return fmt.Sprint("row ", index) }

func (p played) play(r *Run) {
	if p.ranks == 0 {
		p.ranks = 2
	}
	if p.content == nil {
		p.content = fixed
	}
	if p.groups == nil {
		p.groups = ddp
	}
	if p.how == (Pass{}) {
		p.how = Train
	}
	var mains []*Process
	for rank := range p.ranks {
		mains = append(mains, r.Process(rank, p.ranks))
	}
	for rank, main := range mains {
		p.groups(main)
		s := p.serve
		s.Length, s.DatasetID = 40, 1
		if s.Iterable {
			s.DatasetID, s.Length = 0, -1
		}
		if p.id != nil {
			s.DatasetID = 0
		}
		if p.rank != nil {
			p.rank(rank, &s)
		}
		o := main.Serve(s)
		if p.threads != nil {
			for pass := range 2 {
				if pass == 0 || s.Batched != "no" {
					o.Stream(p.how, p.threads(rank)...)
				}
			}
			continue
		}
		for pass := range 2 {
			if p.anew && pass > 0 {
				o = main.Serve(s)
			}
			var list []Sample
			for _, index := range p.order(rank, pass) {
				sample := Sample{Index: index, Content: p.content(rank, index)}
				if p.id != nil {
					inside := p.id(rank, index)
					sample.ID, sample.Content = 1<<40|inside, p.content(rank, inside)
				}
				list = append(list, sample)
			}
			o.Pass(p.how, list)
		}
		if p.more != nil {
			p.more(r, main)
		}
	}
	for _, main := range mains { // all lived to the end
		r.Add(main.Proc, traces.Memory{Rss: 1})
	}
}

func at(samplers string) Serve { return Serve{Samplers: samplers} }

func distributed(rank, replicas int64) func(int, *Serve) {
	return func(r int, s *Serve) {
		s.Rank, s.Replicas = rank, replicas
		if rank < 0 {
			s.Rank = int64(r)
		}
	}
}

func length(n int64) func(int, *Serve) { return func(_ int, s *Serve) { s.Length = n } }

func files(same bool) func(*Run, *Process) {
	return func(r *Run, p *Process) {
		digest := "same for all ranks"
		if !same {
			digest = fmt.Sprint("of rank ", p.Rank)
		}
		r.Add(p.Proc, traces.Attribute{When: "rank", Worker: -1, Dataset: 1, Path: "dataset.files", Class: "list", Items: 40, Whole: true, Ordered: []byte(digest)})
		r.Add(p.Proc, traces.RngState{When: "after"})
	}
}

// reordered is a list on the dataset with the same items in another order on each
// rank.
func reordered(items int64) func(*Run, *Process) {
	return func(r *Run, p *Process) {
		r.Add(p.Proc, traces.Attribute{When: "rank", Worker: -1, Loader: 1, Dataset: 1, Path: "dataset.files", Class: "builtins.list", Items: items, Whole: true, Ordered: fmt.Append(nil, "order of rank ", p.Rank), Unordered: []byte("the same")})
	}
}

func elsewhere(rank int, index int64) string {
	return fmt.Sprint("row ", Shuffled(40, uint64(rank))[index])
}

func random(rank int, index int64) string { return fmt.Sprint("crop ", rank, " of ", index) }

// context is data x context parallel, two each, in one DDP group.
func context(p *Process) {
	p.Group("ddp")
	p.Group("mesh_dim", int64(p.Rank/2*2), int64(p.Rank/2*2+1))
}

// beside is another loader that each rank trains on.
func beside(samplers string) func(*Run, *Process) {
	return func(_ *Run, p *Process) {
		s := Serve{Line: 12, Samplers: samplers, Rank: int64(p.Rank), Replicas: 2, Length: 1000}
		var list []Sample
		for i := range int64(40) {
			list = append(list, Sample{Index: 2*i + int64(p.Rank), Content: fmt.Sprint("new ", 2*i+int64(p.Rank))})
		}
		p.Serve(s).Pass(Train, list)
	}
}

func shares(rank, worker int) (list []Sample) {
	for i := range 20 {
		list = append(list, Sample{Content: fmt.Sprint(rank, " ", worker, " ", i)})
	}
	return list
}

func initialized(p *Process) { p.Group("init", 0, 1) }

// prepared is another loader, which accelerate deals out.
func prepared(_ *Run, p *Process) {
	p.Serve(Serve{Line: 12, Samplers: "accelerate.data_loader.BatchSamplerShard(torch.utils.data.sampler.BatchSampler) > " + SequentialSampler}).Pass(Eval, []Sample{{Index: int64(p.Rank)}})
}

// mixed is half of the 1000 samples of a stream, in an order of the rank's own, of
// which the first were looked at. Two workers split that order.
func mixed(stream, looked, seed, worker int) (list []Sample) {
	for i, sample := range Shuffled(1000, uint64(seed)) {
		if i%2 != worker {
			continue
		}
		s := Sample{Content: fmt.Sprint("sample ", 1000*stream+int(sample))}
		if len(list) >= looked {
			s.Content = ""
		}
		list = append(list, s)
	}
	return list
}

// drawn is the part of a dataset of 60 samples that a rank has drawn by itself.
func drawn(n int) func(rank int, index int64) int64 {
	return func(rank int, index int64) int64 { return Shuffled(60, uint64(7*rank))[:n][index] }
}

// rare is 20 samples that all ranks have, and 20 of each rank's own.
func rare(rank int, index int64) int64 {
	if index < 20 {
		return index
	}
	return 20 + 2*(index-20) + int64(rank)
}

// part of the indices of the loader's own dataset, in another order each pass.
func part(of func(rank int, index int64) int64) func(rank, pass int) []int64 {
	return func(rank, pass int) (list []int64) {
		for _, i := range own(rank, pass) {
			list = append(list, of(rank, i))
		}
		return list
	}
}

const subsetSampler = "torch.utils.data.sampler.BatchSampler > torch.utils.data.sampler.SubsetRandomSampler"

var iterable = Serve{Iterable: true, Workers: 2, Dataset: "__main__.Tracks"}

var cases = []struct {
	name string
	play played
	want string
	says []string
}{
	{"one seed, no shares", played{order: whole}, "proven", []string{"Ranks 0 and 1 are given the same samples: of the 8 samples of a step 4 are different, in both passes", "as if there were 1 rank", "RandomSampler knows of no ranks", "40 of 40 (100 %)", "DistributedSampler(dataset, shuffle=True)", "batch_size=4"}},
	{"inside a batch sampler of its own", played{serve: at("__main__.Bins(torch.utils.data.sampler.BatchSampler) > torch.utils.data.sampler.RandomSampler"), order: whole}, "proven", nil},
	{"in order", played{serve: at(SequentialSampler), order: func(int, int) []int64 { return Ascending(40, 0, 1) }}, "proven", []string{"shuffle=False"}},
	{"a subset", played{serve: at("torch.utils.data.sampler.BatchSampler > torch.utils.data.sampler.SubsetRandomSampler"), order: whole}, "proven", []string{"Subset(dataset, indices)"}},
	{"each shuffles everything", played{order: own}, "proven", []string{"go through the same samples: 40 of 40 of one rank", "goes through the data 2 times", "4 of them in the same step"}},
	{"four ranks", played{order: whole, ranks: 4}, "proven", []string{"Ranks 0, 1, 2 and 3", "of the 16 samples of a step 4 are different"}},
	{"told that there is one rank", played{serve: at(DistributedSampler), rank: distributed(0, 1), order: dealt(40, 1)}, "proven", []string{"num_replicas=1"}},
	{"told the same rank", played{serve: at(DistributedSampler), rank: distributed(0, 2), order: func(_, pass int) []int64 { return dealt(40, 2)(0, pass) }}, "proven", []string{"on rank 0, on both ranks"}},
	{"across the mesh", played{order: whole, ranks: 4, groups: context}, "proven", nil},
	{"augmented, over the same files", played{order: whole, content: random, more: files(true)}, "likely", nil},
	{"no group was seen", played{order: whole, groups: initialized}, "likely", []string{"It was not seen"}},
	{"no step was seen", played{order: whole, how: Pass{BaseSeed: 1}}, "likely", nil},
	{"one order of a sampler of its own", played{serve: at("__main__.Curriculum(torch.utils.data.sampler.Sampler)"), order: whole}, "likely", []string{"Curriculum hands out one order", "islice"}},
	{"each shuffles, and breaks off", played{order: func(rank, pass int) []int64 { return Shuffled(60, uint64(10*rank+pass)) }, how: Pass{Optimizer: 1, Break: 12}}, "likely", nil},

	{"another split on each rank", played{order: own, id: drawn(40)}, "likely", []string{"of 40 of one rank are another's too", "has drawn its own part", "27 samples are expected", "manual_seed(0)", "DataLoader(train, batch_size=4, sampler=sampler)", "Index 0 of the loader's dataset"}},
	{"another split on each rank, by a sampler", played{serve: at(subsetSampler), rank: length(60), order: part(drawn(40))}, "likely", []string{"has drawn its own part"}},
	{"all of it, in a list of its own", played{serve: at(SequentialSampler), order: func(int, int) []int64 { return Ascending(40, 0, 1) }, id: func(rank int, index int64) int64 { return Shuffled(40, uint64(rank))[index] }}, "proven", []string{"40 of 40 of one rank", "in a list of its own", "Subset(dataset, torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0)))", "DistributedSampler(train"}},
	{"a share that each rank has drawn by itself", played{order: func(rank, pass int) []int64 { return Shuffled(32, uint64(10*rank+pass)) }, id: drawn(32)}, "likely", []string{"has drawn its own part", "random_split(dataset, lengths, generator=", "not:DistributedSampler"}},
	{"not prepared by accelerate", played{order: whole, more: prepared}, "proven", []string{"as the loader of train.py:12", "accelerator.prepare(loader)", "not:DistributedSampler"}},

	{"a memory that each rank draws from, beside a loader that is dealt out", played{order: own, more: beside(DistributedSampler)}, "likely", []string{"each rank is meant to draw from this by itself"}},
	{"a memory that is the same on all ranks, beside a loader that is dealt out", played{order: whole, more: beside(DistributedSampler)}, "proven", nil},
	{"two loaders, and none is dealt out", played{order: own, more: beside(SequentialSampler)}, "proven", nil},
	{"a training that counts steps", played{order: own, how: Pass{Optimizer: 1, Break: 30}}, "likely", []string{"counts steps, not epochs"}},

	{"files in an order of its own on each rank", played{order: own, content: elsewhere, more: reordered(40)}, "likely", []string{"go through the same samples: 40 of 40", "dataset.files has the same 40 items on ranks 0 and 1, in another order", "one order of files on all ranks (self.files = sorted(self.files))"}},
	{"files in an order of its own on each rank, not shuffled", played{serve: at(SequentialSampler), order: func(int, int) []int64 { return Ascending(40, 0, 1) }, content: elsewhere, more: reordered(40)}, "likely", []string{"go through the same samples", "shuffle=False"}},

	{"shares", played{serve: at(DistributedSampler), rank: distributed(-1, 2), order: dealt(40, 2)}, "clean", []string{"1 pair"}},
	{"shares, padded", played{serve: at(DistributedSampler), rank: distributed(-1, 2), order: dealt(39, 2)}, "clean", nil},
	{"a subset for each rank", played{serve: at(SequentialSampler), order: func(int, int) []int64 { return Ascending(20, 0, 1) }, id: func(rank int, index int64) int64 { return 2*index + int64(rank) }}, "clean", nil},
	{"a dataset three times over, in one pass", played{serve: at(DistributedSampler), rank: distributed(-1, 2), order: once(dealt(40, 2)), id: func(_ int, index int64) int64 { return index / 3 }}, "clean", nil},
	{"evaluation", played{order: whole, how: Eval, more: func(r *Run, p *Process) {
		p.Serve(Serve{Line: 12, Iterable: true, Length: -1}).Stream(Train, shares(p.Rank, 0))
	}}, "not-applicable", []string{"an evaluation"}},
	{"another dataset on each rank", played{order: whole, rank: func(rank int, s *Serve) { s.Length = int64(40 + rank) }, content: random}, "clean", nil},

	{"another split on each rank, in each pass", played{order: own, id: drawn(40), anew: true}, "cannot-tell", []string{"others in each pass"}},
	{"rare samples on all ranks", played{order: own, id: rare}, "cannot-tell", []string{"a part of their samples in common"}},
	{"rare samples on all ranks, first", played{serve: at(SequentialSampler), order: func(int, int) []int64 { return Ascending(40, 0, 1) }, id: rare}, "cannot-tell", []string{"a part of their samples in common"}},
	{"rare samples on all ranks, by a sampler", played{serve: at(subsetSampler), rank: length(60), order: part(rare)}, "cannot-tell", []string{"a part of their samples in common"}},
	{"some of all, drawn in each pass", played{rank: length(60), order: func(rank, pass int) []int64 { return Shuffled(60, uint64(10*rank+pass))[:40] }}, "cannot-tell", []string{"others in each pass"}},
	{"another split on each rank, and shares", played{serve: at(DistributedSampler), rank: distributed(-1, 2), order: dealt(40, 2), id: drawn(40)}, "cannot-tell", []string{"ranks-disagree"}},
	{"another split on each rank, in trainings of their own", played{order: own, id: drawn(40), groups: initialized}, "cannot-tell", []string{"not seen that their gradients"}},
	{"with replacement", played{serve: Serve{Replacement: "yes"}, order: whole}, "cannot-tell", []string{"with replacement"}},
	{"weighted", played{serve: at("torch.utils.data.sampler.BatchSampler > torch.utils.data.sampler.WeightedRandomSampler"), order: whole}, "cannot-tell", nil},
	{"groups of generations", played{serve: at("torch.utils.data.sampler.BatchSampler > trl.trainer.utils.RepeatSampler(torch.utils.data.sampler.Sampler)"), order: whole}, "cannot-tell", []string{"RepeatSampler", "no contract"}},
	{"repeated augmentation", played{serve: at("torch.utils.data.sampler.BatchSampler > __main__.RASampler(torch.utils.data.sampler.Sampler)"), order: whole}, "cannot-tell", []string{"RASampler"}},
	{"a custom sampler, other orders", played{serve: at("__main__.Buckets(torch.utils.data.sampler.Sampler)"), order: own}, "cannot-tell", []string{"custom sampler, without a contract"}},
	{"a custom sampler that repeats", played{serve: at("__main__.Buckets(torch.utils.data.sampler.Sampler)"), order: func(_, pass int) []int64 { return append(Shuffled(20, uint64(pass)), Shuffled(20, uint64(pass))...) }}, "cannot-tell", nil},
	{"a sampler of its own in Lightning's", played{serve: at("torch.utils.data.sampler.BatchSampler > lightning.fabric.utilities.distributed.DistributedSamplerWrapper(torch.utils.data.distributed.DistributedSampler) > torch.utils.data.sampler.RandomSampler"),
		order: func(rank, pass int) []int64 { return own(rank, pass)[:20] }}, "cannot-tell", []string{"without a contract"}},
	{"a batch sampler that takes two views of each", played{serve: at("__main__.Views(torch.utils.data.sampler.BatchSampler) > torch.utils.data.sampler.RandomSampler"),
		order: func(_, pass int) []int64 { return append(Shuffled(20, uint64(pass)), Shuffled(20, uint64(pass))...) }}, "cannot-tell", []string{"more than once on a rank"}},
	{"context parallel", played{order: func(rank, pass int) []int64 { return dealt(40, 2)(rank/2, pass) }, ranks: 4, groups: context}, "cannot-tell", []string{"one replica"}},
	{"not even a process group", played{order: whole, groups: func(*Process) {}}, "cannot-tell", []string{"trainings of their own"}},
	{"activations are sent", played{order: whole, groups: func(p *Process) { initialized(p); p.Group("exchange", 0, 1) }}, "cannot-tell", []string{"by hand"}},
	{"gradients are reduced by hand", played{order: whole, groups: func(p *Process) { initialized(p); p.Group("reduce", 0, 1) }}, "proven", nil},
	{"groups of its own", played{order: whole, groups: func(p *Process) { p.Group("group", 0, 1) }}, "cannot-tell", []string{"one replica"}},
	{"pipeline stages", played{order: whole, groups: func(p *Process) { p.Group("ddp", int64(p.Rank), int64(p.Rank)+100) }}, "not-applicable", []string{"no two ranks whose gradients"}},
	{"each rank its own files, at the same indices", played{order: whole, content: random}, "cannot-tell", []string{"not seen to agree"}},
	{"each rank its own list of files", played{order: whole, content: random, more: files(false)}, "cannot-tell", []string{"not seen to agree"}},
	{"files in an order of its own on each rank, in trainings of their own", played{order: own, content: elsewhere, more: reordered(40), groups: initialized}, "cannot-tell", []string{"not seen to agree"}},
	{"a list in an order of its own that is none of the samples", played{order: own, content: random, more: reordered(30)}, "cannot-tell", []string{"not seen to agree"}},
	{"seeds differ", played{serve: at(DistributedSampler), rank: func(r int, s *Serve) { s.Rank, s.Replicas, s.Seed = int64(r), 2, int64(r) }, order: func(rank, pass int) []int64 { return own(rank, pass)[:20] }}, "cannot-tell", []string{"different seeds"}},
	{"one rank", played{order: whole, ranks: 1}, "not-applicable", []string{"one rank"}},
	{"lost", played{serve: at(DistributedSampler), rank: distributed(-1, 2), order: dealt(40, 2), more: func(r *Run, _ *Process) { r.Lost("hook", "batch_put", 3) }}, "cannot-tell", []string{"lost"}},

	{"a stream, read by all", played{serve: iterable, threads: func(int) [][]Sample { return [][]Sample{shares(0, 0), shares(0, 1)} }}, "proven", []string{"Ranks 0 and 1 read the same samples", "20 of 20 (100 %) positions of worker 0", "each rank takes its share of what it yields now", "islice(samples, rank, None, world)"}},
	{"a stream, read by all ranks and workers", played{serve: iterable, threads: func(int) [][]Sample { return [][]Sample{shares(0, 0), shares(0, 0)} }}, "proven", []string{"world * info.num_workers", "samples: what __iter__ yields now"}},
	{"a stream of Hugging Face's, shuffled by the rank", played{serve: Serve{Iterable: true, Workers: 2, Dataset: "datasets.iterable_dataset.IterableDataset"}, threads: func(rank int) [][]Sample { return [][]Sample{mixed(0, 500, rank, 0), mixed(0, 500, rank, 1)} }}, "likely", []string{"one order on all ranks", "split_dataset_by_node"}},
	{"a stream of Hugging Face's", played{serve: Serve{Iterable: true, Workers: 2, Dataset: "datasets.iterable_dataset.IterableDataset"}, threads: func(int) [][]Sample { return [][]Sample{shares(0, 0), shares(0, 1)} }}, "proven", []string{"split_dataset_by_node(dataset, rank=rank"}},
	{"all shards of webdataset", played{serve: Serve{Iterable: true, Workers: 2, Dataset: "webdataset.compat.WebDataset"}, threads: func(int) [][]Sample { return [][]Sample{shares(0, 0), shares(0, 1)} }}, "proven", []string{"nodesplitter=webdataset.split_by_node"}},
	{"a stream, each rank in an order of its own, a part was looked at", played{serve: iterable, threads: func(rank int) [][]Sample { return [][]Sample{mixed(0, 80, rank, 0), mixed(0, 80, rank, 1)} }}, "likely", []string{"are in both"}},
	{"a stream, dealt out by rank + worker", played{serve: iterable, threads: func(rank int) [][]Sample { return [][]Sample{shares(0, rank), shares(0, rank+1)} }}, "likely", []string{"Worker 1 of rank 0 and worker 0 of rank 1 read the same samples", "rank * workers + worker", "take the place of others", "samples: all there are, on every rank and worker"}},
	{"a stream, each rank in an order of its own", played{serve: iterable, threads: func(rank int) [][]Sample { return [][]Sample{mixed(0, 500, rank, 0), mixed(0, 500, rank, 1)} }}, "likely", []string{"each in an order of its own"}},
	{"a stream, half of it on both ranks, in orders of their own", played{serve: iterable, threads: func(rank int) [][]Sample { return [][]Sample{mixed(0, 500, rank, 0), mixed(1+rank, 500, rank, 1)} }}, "cannot-tell", []string{"some of the same samples"}},
	{"a stream, dealt out, in a random order", played{serve: iterable, threads: func(rank int) [][]Sample { return [][]Sample{mixed(rank, 80, rank, 0), mixed(rank, 80, rank, 1)} }}, "clean", nil},
	{"a stream, dealt out, hardly looked at", played{serve: iterable, threads: func(rank int) [][]Sample { return [][]Sample{mixed(rank, 20, rank, 0), mixed(rank, 20, rank, 1)} }}, "cannot-tell", []string{"--digest full"}},
	{"a stream of batches", played{serve: Serve{Iterable: true, Workers: 2, Length: -1, Batched: "no"}, threads: func(rank int) [][]Sample { return [][]Sample{shares(rank, 0), shares(rank, 1)} }}, "cannot-tell", []string{"batch_size=None"}},
	{"a stream, without a group", played{serve: iterable, groups: initialized, threads: func(int) [][]Sample { return [][]Sample{shares(0, 0), shares(0, 1)} }}, "likely", nil},
	{"a stream, dealt out", played{serve: iterable, threads: func(rank int) [][]Sample { return [][]Sample{shares(rank, 0), shares(rank, 1)} }}, "clean", nil},
	{"a stream, of context-parallel ranks", played{serve: iterable, groups: context, ranks: 4, threads: func(rank int) [][]Sample { return [][]Sample{shares(rank/2, 0), shares(rank/2, 1)} }}, "cannot-tell", []string{"one replica"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play.play(run)
			run.Seal()
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, shardduplicateranks.Rule.ID, c.want, c.says)
		})
	}
}

package shardduplicateranks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

func (v *verdict) fix(p *pair) string {
	at, o := v.ranks[0].At(), p.a.DataLoader()
	if p.shared == nil && p.list == "" {
		if prepared := v.prepared(); prepared != "" {
			return fmt.Sprintf("# %s: have accelerate deal it out to the ranks, as the loader of %s\nloader = accelerator.prepare(loader)", at,
				prepared)
		}
	}
	if p.twins != nil {
		return v.share(p)
	}
	if samplers.SharingOf(o) == samplers.Custom {
		return fmt.Sprintf("# %s: have %s hand out every world-th sample or batch, from the rank's on\nreturn itertools.islice(order, "+
			"torch.distributed.get_rank(), None, torch.distributed.get_world_size())", at, samplers.Name(o))
	}
	if p.shared != nil {
		return v.oneList(p)
	}
	if p.list != "" {
		name := words.Last(p.list)
		at += fmt.Sprintf(": one order of %s on all ranks (self.%s = sorted(self.%s)), and", name, name, name)
	} else {
		at += ":"
	}
	shuffle := "True"
	if o.Shuffle == "no" || strings.HasSuffix(samplers.Name(o), "SequentialSampler") {
		shuffle = "False"
	}
	data := "dataset"
	if strings.HasSuffix(samplers.Name(o), "SubsetRandomSampler") {
		data = "torch.utils.data.Subset(dataset, indices)"
	}
	return fmt.Sprintf(`# %s a share for each rank; it asks the process group which one
sampler = torch.utils.data.DistributedSampler(%s, shuffle=%s)
loader = %s
for epoch in range(epochs):
    sampler.set_epoch(epoch)`, at, data, shuffle, loader(o))
}

// oneList is the fix where each rank has drawn a list of its own: a share of the
// dataset, that which others do not have, or a part that is to be shared out.
func (v *verdict) oneList(p *pair) string {
	at, s := v.ranks[0].At(), p.shared
	if len(v.ranks)*max(s.A, s.B) <= s.Length+s.Length/10 {
		return fmt.Sprintf(`# %s: each rank drew its share by itself. Draw with one seed on all ranks, whichever of these divides the data
order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))
parts = torch.utils.data.random_split(dataset, lengths, generator=torch.Generator().manual_seed(0))`, at)
	}
	divide := "train, val = torch.utils.data.random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(0))"
	if s.Alike() {
		divide = "train = torch.utils.data.Subset(dataset, torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0)))"
	}
	return fmt.Sprintf(`# %s: one list on all ranks, drawn with one seed (torch.randperm takes a generator, too), and a share of it for each
%s
sampler = torch.utils.data.DistributedSampler(train, shuffle=True)
loader = %s
for epoch in range(epochs):
    sampler.set_epoch(epoch)`, at, divide, strings.Replace(loader(p.a.DataLoader()), "dataset", "train", 1))
}

// prepared is a place where the program has a loader that accelerate deals out
// to the ranks; "" none.
func (v *verdict) prepared() string {
	i := slices.IndexFunc(v.Loaders, func(l *timeline.Loader) bool {
		o := l.First()
		return strings.HasPrefix(o.Class, "accelerate.") || strings.Contains(o.Samplers, "accelerate.data_loader.BatchSamplerShard")
	})
	if i < 0 {
		return ""
	}
	return v.Loaders[i].At()
}

// share is how an IterableDataset gives each rank its own part: of a library,
// by what the library has for it.
func (v *verdict) share(p *pair) string {
	at, class := v.ranks[0].At(), p.a.DataLoader().DatasetClass
	order := ""
	if p.twins.Scattered || p.twins.Anywhere {
		order = "; before that, one order on all ranks: a shuffle by one seed (and the epoch), not by the rank"
	}
	switch module, _, _ := strings.Cut(class, "."); module {
	case "webdataset", "wids":
		return fmt.Sprintf("# %s: deal the shards to the ranks%s\ndataset = webdataset.WebDataset(urls, "+
			"nodesplitter=webdataset.split_by_node)", at, order)
	case "datasets":
		return fmt.Sprintf(`# %s: Hugging Face deals files to workers, not to ranks%s
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
dataset = datasets.distributed.split_dataset_by_node(dataset, rank=rank, world_size=world)`, at, order)
	}
	if !p.crossed() && v.divided(p.a) {
		return fmt.Sprintf(`# %s: in __iter__ of %s, each rank takes its share of what it yields now; its workers divide that among them%s
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
for sample in itertools.islice(samples, rank, None, world):  # samples: what __iter__ yields now
    yield sample`, at, words.Last(class), order)
	}
	what := "what __iter__ yields now"
	if p.crossed() {
		what = "all there are, on every rank and worker: this takes the place of what divides them now"
	}
	return fmt.Sprintf(`# %s: in __iter__ of %s, each rank and worker takes its share%s
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
shard, shards = rank, world
info = torch.utils.data.get_worker_info()
if info is not None:
    shard, shards = rank * info.num_workers + info.id, world * info.num_workers
for sample in itertools.islice(samples, shard, None, shards):  # samples: %s
    yield sample`, at, words.Last(class), order, what)
}

// divided reports whether the workers of a rank read different samples.
func (v *verdict) divided(pass *timeline.Pass) bool {
	for i, w := range pass.Workers {
		r := v.ledger.Read(w)
		if r == nil || r.Looked() < enough {
			return false
		}
		for _, x := range pass.Workers[:i] {
			if samples.Compare(r, v.ledger.Read(x)) != nil {
				return false
			}
		}
	}
	return len(pass.Workers) > 1
}

// loader is how the loader is made with that sampler.
func loader(o *traces.Loader) string {
	if samplers.GivenBatches(o) {
		return "DataLoader(dataset, batch_sampler=torch.utils.data.BatchSampler(sampler, batch_size, drop_last=False))"
	}
	return "DataLoader(dataset, batch_size=" + strconv.Itoa(int(o.BatchSize)) + ", sampler=sampler)"
}

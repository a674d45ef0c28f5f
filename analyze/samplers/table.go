package samplers

import "github.com/dptrace/dptrace/traces"

// sampler is what one class promises.
type sampler struct {
	order   Order
	sharing Sharing
	all     bool                       // it asks for indices below the length of its dataset, and for all of them
	samples func(*traces.Loader) int64 // that it hands out in one pass on one rank; nil or 0: not known
}

// table is torch's samplers. Those of torchdata's stateful loader are the same
// with a state. accelerate's SeedableRandomSampler seeds its generator by an epoch
// of its own: it knows of no ranks, and promises no new order.
var table = map[string]sampler{
	"torch.utils.data.sampler.SequentialSampler":      {Sequential, EachItsOwn, true, length},
	"torch.utils.data.sampler.RandomSampler":          {Shuffles, EachItsOwn, true, lengthOnce},
	"torch.utils.data.sampler.SubsetRandomSampler":    {Shuffles, EachItsOwn, false, nil},
	"torch.utils.data.sampler.WeightedRandomSampler":  {Shuffles, Replacing, false, nil},
	"torch.utils.data.distributed.DistributedSampler": {Shuffles, Distributed, true, share},

	"torchdata.stateful_dataloader.sampler.RandomSampler":              {Shuffles, EachItsOwn, false, nil},
	"torchdata.stateful_dataloader.sampler.StatefulDistributedSampler": {Shuffles, Distributed, false, nil},

	"accelerate.data_loader.SeedableRandomSampler": {Own, EachItsOwn, false, nil},
}

const (
	torchBatches = "torch.utils.data.sampler.BatchSampler"
	sequential   = "torch.utils.data.sampler.SequentialSampler"
)

// plainBatches makes batches of one size of what a sampler says, and nothing else.
var plainBatches = map[string]bool{torchBatches: true, "torchdata.stateful_dataloader.sampler.BatchSampler": true}

// length of the dataset.
func length(l *traces.Loader) int64 { return l.Length }

// lengthOnce is the same, where nothing is drawn twice.
func lengthOnce(l *traces.Loader) int64 {
	if l.Replacement != "no" {
		return 0
	}
	return l.Length
}

// share of one rank: the total is padded, or cut, to as many on each.
func share(l *traces.Loader) int64 {
	if l.SamplerTotal <= 0 || l.SamplerReplicas <= 0 || l.SamplerTotal%l.SamplerReplicas != 0 {
		return 0
	}
	return l.SamplerTotal / l.SamplerReplicas
}

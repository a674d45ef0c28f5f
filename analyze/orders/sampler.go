package orders

import (
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// Promise is what is known of the order that a sampler promises.
type Promise int

const (
	Own        Promise = iota // a class of the program's or of a library's own: nothing is promised
	Sequential                // torch's: 0, 1, 2, ...
	Shuffles                  // torch's: a new order in each pass, unless it was told not to shuffle at all
	Within                    // a batch sampler of the program's own around one that shuffles
)

// Torch's samplers that draw an order for each pass. Those of torchdata's
// stateful loader are the same with a state.
var shuffling = map[string]bool{
	"torch.utils.data.sampler.RandomSampler":                           true,
	"torch.utils.data.sampler.SubsetRandomSampler":                     true,
	"torch.utils.data.sampler.WeightedRandomSampler":                   true,
	"torch.utils.data.distributed.DistributedSampler":                  true,
	"torchdata.stateful_dataloader.sampler.RandomSampler":              true,
	"torchdata.stateful_dataloader.sampler.StatefulDistributedSampler": true,
}

const sequential = "torch.utils.data.sampler.SequentialSampler"

// contract of a loader's sampler. Where the program gives a batch sampler
// without a sampler inside, the loader has a SequentialSampler that nobody uses.
func contract(l *traces.Loader) Promise {
	plain := plainBatches(l)
	switch {
	case plain && l.Sampler == sequential:
		return Sequential
	case plain && shuffling[l.Sampler]:
		return Shuffles
	case shuffling[l.Sampler]:
		return Within
	}
	return Own
}

func plainBatches(l *traces.Loader) bool {
	switch l.BatchSampler {
	case "", "torch.utils.data.sampler.BatchSampler", "torchdata.stateful_dataloader.sampler.BatchSampler":
		return true
	}
	return false
}

// Class is the sampler's class without its module.
func Class(l *traces.Loader) string {
	name := l.Sampler
	if !plainBatches(l) && !shuffling[name] {
		name = l.BatchSampler
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

// Sampler is how the program can name the sampler of a loader. The loader's own
// is another one where it was given a batch sampler, torch's or not: then it has
// no batch size.
func Sampler(l *traces.Loader) string {
	if plainBatches(l) && (l.BatchSampler == "" || l.BatchSize > 0) {
		return "loader.sampler"
	}
	return "loader.batch_sampler.sampler"
}

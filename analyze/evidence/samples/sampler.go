package samples

import (
	"regexp"
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// Promise is what a loader's sampler promises about the ranks.
type Promise int

const (
	Custom      Promise = iota // of the program's or a library's own: nothing is promised
	EachItsOwn                 // torch's, without replacement: it knows of no ranks, and goes through all of its data on each
	Distributed                // torch's DistributedSampler: a share for each rank, padded
	Replacing                  // with replacement: samples come more than once, on one rank and on several
	Repeating                  // by its name it hands out samples several times, on purpose
)

// ofSamplers is what torch's samplers promise; torchdata's stateful ones are
// the same. SeedableRandomSampler only seeds its generator by the epoch.
var ofSamplers = map[string]Promise{
	"torch.utils.data.sampler.RandomSampler":                           EachItsOwn,
	"torch.utils.data.sampler.SequentialSampler":                       EachItsOwn,
	"torch.utils.data.sampler.SubsetRandomSampler":                     EachItsOwn,
	"torch.utils.data.sampler.WeightedRandomSampler":                   Replacing,
	"torch.utils.data.distributed.DistributedSampler":                  Distributed,
	"torchdata.stateful_dataloader.sampler.RandomSampler":              EachItsOwn,
	"torchdata.stateful_dataloader.sampler.StatefulDistributedSampler": Distributed,
	"accelerate.data_loader.SeedableRandomSampler":                     EachItsOwn,
}

// repeating is names of samplers that repeat samples: GRPO's, repeated
// augmentation, episodes of few shots, P classes of K samples.
var repeating = regexp.MustCompile(`(?i)repeat|group|episod|shot|support|perclass|contrast|triplet|resampl|oversampl|RASampler|BatchAug|PKSampler|\bPK`)

// ContractOf a loader. The innermost sampler decides, whatever batches are made
// of what it says.
func ContractOf(l *traces.Loader) Promise {
	chain := chainOf(l)
	if repeating.MatchString(strings.Join(chain, " ")) {
		return Repeating
	}
	if l.Replacement == "yes" {
		return Replacing
	}
	for _, outer := range chain[:len(chain)-1] { // Lightning's, around the program's sampler
		if strings.Contains(outer, "DistributedSampler") {
			return Custom
		}
	}
	class, _, _ := strings.Cut(chain[len(chain)-1], "(")
	return ofSamplers[class]
}

// chainOf is the classes from the batch sampler inwards. Where the program gives
// a batch sampler that holds none, the loader of an older trace has a
// SequentialSampler that nobody uses.
func chainOf(l *traces.Loader) []string {
	if l.Samplers != "" {
		return strings.Split(l.Samplers, " > ")
	}
	switch l.BatchSampler {
	case "", "torch.utils.data.sampler.BatchSampler", "torchdata.stateful_dataloader.sampler.BatchSampler":
		return []string{l.BatchSampler, l.Sampler}
	}
	if l.Sampler == "torch.utils.data.sampler.SequentialSampler" {
		return []string{l.BatchSampler}
	}
	return []string{l.BatchSampler, l.Sampler}
}

// SamplerName is the class that decides on the order, without its module.
func SamplerName(l *traces.Loader) string {
	chain := chainOf(l)
	class, _, _ := strings.Cut(chain[len(chain)-1], "(")
	return ClassName(class)
}

// GivenBatches reports whether the program gave a batch sampler of its own making.
func GivenBatches(l *traces.Loader) bool { return l.BatchSize <= 0 }

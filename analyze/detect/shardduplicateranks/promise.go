package shardduplicateranks

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/traces"
)

// promise is what the samplers of two ranks promise, when they were given the
// same samples: why they should not have been becomes the pair's cause. It says
// why nothing can be said.
func promise(p *pair, a, b *traces.Loader) (why string) {
	contract := samplers.SharingOf(a)
	if contract != samplers.SharingOf(b) {
		return "the ranks have different samplers"
	}
	name := samplers.Name(a)
	switch contract {
	case samplers.Replacing:
		return fmt.Sprintf("%s draws with replacement: ranks have samples in common by chance", name)
	case samplers.Repeating:
		return fmt.Sprintf("%s hands out samples more than once, by its name: no contract", name)
	case samplers.Distributed:
		return dealt(p, a, b)
	case samplers.EachItsOwn:
		if !p.overlap.Once(p.a) || !p.overlap.Once(p.b) {
			return "samples come more than once on a rank: a batch sampler that repeats them, without a contract"
		}
		p.cause = name + " knows of no ranks: it goes through all of the data on each of them"
		return ""
	}
	if p.identical() {
		p.cause = fmt.Sprintf("%s hands out one order on all ranks", name)
		p.doubts = append(p.doubts, repeated)
		return ""
	}
	return fmt.Sprintf("ranks have samples in common: %s is a custom sampler, without a contract", name)
}

// dealt: DistributedSampler gives each rank a share, if it is told which rank it
// is on.
func dealt(p *pair, a, b *traces.Loader) (why string) {
	switch {
	case a.SamplerReplicas < 0 || b.SamplerReplicas < 0 || a.SamplerRank < 0 || b.SamplerRank < 0:
		return "the rank of the distributed sampler is not known"
	case a.SamplerReplicas == 1 && b.SamplerReplicas == 1:
		p.cause = "the DistributedSampler was told that there is one rank (num_replicas=1)"
		return ""
	case a.SamplerRank == b.SamplerRank && a.SamplerReplicas == b.SamplerReplicas:
		p.cause = fmt.Sprintf("the DistributedSampler was told that it is on rank %d, on both ranks", a.SamplerRank)
		return ""
	case a.SamplerSeed != b.SamplerSeed:
		return fmt.Sprintf("the samplers have different seeds, %d and %d: shares of two different orders", a.SamplerSeed, b.SamplerSeed)
	}
	return "shares of a DistributedSampler have samples in common: the ranks are at different epochs, or have different lengths"
}

// inStep reports whether most of what the ranks have in common came in the same
// step.
func (p *pair) inStep() bool {
	return p.common != nil && p.shared == nil && p.list == "" && 2*p.common.InStep >= p.common.Samples
}

// identical reports whether two ranks were given one sequence that has each
// sample once.
func (p *pair) identical() bool {
	c := p.common
	return c != nil && c.Samples >= enough && c.InStep == c.Samples && c.Samples == p.overlap.DistinctOf(p.a) &&
		c.Samples == p.overlap.DistinctOf(p.b) &&
		p.overlap.Once(p.a) && p.overlap.Once(p.b)
}

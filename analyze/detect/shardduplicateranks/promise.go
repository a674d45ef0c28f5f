package shardduplicateranks

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/traces"
)

// promise is what the samplers of two ranks promise, when they were given the
// same samples: how sure it is that they should not have been, and the cause; or
// why nothing can be said.
func promise(p *pair, a, b *traces.Loader) (why, cause string, sure finding.Certainty) {
	contract := samplers.SharingOf(a)
	if contract != samplers.SharingOf(b) {
		return "the ranks have different samplers", "", 0
	}
	name := samplers.Name(a)
	switch contract {
	case samplers.Replacing:
		return fmt.Sprintf("%s draws with replacement: ranks have samples in common by chance", name), "", 0
	case samplers.Repeating:
		return fmt.Sprintf("%s hands out samples more than once, by its name: no contract", name), "", 0
	case samplers.Distributed:
		return dealt(p, a, b)
	case samplers.EachItsOwn:
		if !p.overlap.Once(p.a) || !p.overlap.Once(p.b) {
			return "samples come more than once on a rank: a batch sampler that repeats them, without a contract", "", 0
		}
		cause = name + " knows of no ranks: it goes through all of the data on each of them"
		if p.inStep() || p.a.Exhausted && p.b.Exhausted {
			return "", cause, finding.Proven
		}
		return "", cause, finding.Likely
	}
	if p.identical() {
		return "", fmt.Sprintf("%s hands out one order on all ranks", name), finding.Likely
	}
	return fmt.Sprintf("ranks have samples in common: %s is a custom sampler, without a contract", name), "", 0
}

// dealt: DistributedSampler gives each rank a share, if it is told which rank it
// is on.
func dealt(p *pair, a, b *traces.Loader) (why, cause string, sure finding.Certainty) {
	switch {
	case a.SamplerReplicas < 0 || b.SamplerReplicas < 0 || a.SamplerRank < 0 || b.SamplerRank < 0:
		return "the rank of the distributed sampler is not known", "", 0
	case a.SamplerReplicas == 1 && b.SamplerReplicas == 1:
		return "", "the DistributedSampler was told that there is one rank (num_replicas=1)", finding.Proven
	case a.SamplerRank == b.SamplerRank && a.SamplerReplicas == b.SamplerReplicas:
		return "", fmt.Sprintf("the DistributedSampler was told that it is on rank %d, on both ranks", a.SamplerRank), finding.Proven
	case a.SamplerSeed != b.SamplerSeed:
		return fmt.Sprintf("the samplers have different seeds, %d and %d: shares of two different orders", a.SamplerSeed, b.SamplerSeed), "", 0
	}
	return "shares of a DistributedSampler have samples in common: the ranks are at different epochs, or have different lengths", "", 0
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

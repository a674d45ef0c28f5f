package wronglen

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// drawsBelow reports whether a sampler is one of torch's that asks for all indices
// below the length of what it was made for, which as a rule is the loader's
// dataset.
func drawsBelow(sampler string) bool {
	return slices.Contains([]string{"torch.utils.data.sampler.RandomSampler", "torch.utils.data.sampler.SequentialSampler",
		"torch.utils.data.distributed.DistributedSampler"}, sampler)
}

// longest is the largest number that we reckon with: those of a trace may be any.
const longest = 1 << 48

// boundsOf the length of a dataset, by what a pass asked for: most -1 is not
// known.
func boundsOf(p *timeline.Pass, asked *values.Asked) (least, most int64) {
	o := p.DataLoader()
	plain := o.BatchSampler == "" || o.BatchSampler == "torch.utils.data.sampler.BatchSampler"
	if asked == nil || asked.Odd || p.Blind || !plain || !drawsBelow(o.Sampler) {
		return 0, -1
	}
	least = min(asked.Max, longest) + 1
	n, total, replicas := int64(asked.Samples), min(o.SamplerTotal, longest), min(o.SamplerReplicas, longest)
	batch := int64(o.BatchSize)
	switch {
	case replicas > 0 && total > 0: // it repeats or leaves out fewer than there are ranks
		return max(least, total-replicas+1), total + replicas - 1
	case replicas > 0 || !p.Exhausted || o.Replacement == "yes":
	case !o.DropLast && n == least:
		return n, n
	case o.DropLast && batch > 0 && least < n+batch:
		return max(least, n), n + batch - 1
	}
	return least, -1
}

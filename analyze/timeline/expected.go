package timeline

import "github.com/dptrace/dptrace/traces"

// expectedBatches is how many batches torch's own samplers deal out in one pass; 0 not
// known. Lightning, and loops that count, leave a pass after its last batch
// without asking for the end: that pass has come to its end as well.
func expectedBatches(l *traces.Loader) int {
	if l.Iterable || l.BatchSize <= 0 {
		return 0
	}
	samples := int64(0)
	switch l.Samplers {
	case "torch.utils.data.sampler.BatchSampler > torch.utils.data.distributed.DistributedSampler":
		if l.SamplerTotal <= 0 || l.SamplerReplicas <= 0 || l.SamplerTotal%l.SamplerReplicas != 0 {
			return 0
		}
		samples = l.SamplerTotal / l.SamplerReplicas
	case "torch.utils.data.sampler.BatchSampler > torch.utils.data.sampler.SequentialSampler":
		samples = l.Length
	case "torch.utils.data.sampler.BatchSampler > torch.utils.data.sampler.RandomSampler":
		if l.Replacement == "no" {
			samples = l.Length
		}
	}
	size := int64(l.BatchSize)
	if !l.DropLast {
		samples += size - 1
	}
	return int(max(samples, 0) / size)
}

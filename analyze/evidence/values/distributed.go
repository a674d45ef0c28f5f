package values

import (
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// Deals reports whether a loader's sampler deals the indices of one dataset out to
// ranks that all have to have the same list; exact: it is torch's or torchdata's
// own class, not one made from it.
func Deals(o *traces.Loader) (deals, exact bool) {
	if o.SamplerReplicas < 2 || o.Iterable {
		return false, false
	}
	switch o.Sampler {
	case "torch.utils.data.distributed.DistributedSampler", "torchdata.stateful_dataloader.sampler.StatefulDistributedSampler":
		return true, true
	}
	return strings.Contains(o.Samplers, "DistributedSampler"), false
}

package recorder

import (
	"fmt"

	"github.com/dptrace/dptrace/probes"
	"github.com/dptrace/dptrace/probes/probe"
)

// ExitRefused is the exit code when the tier that was demanded cannot be had.
const ExitRefused = 4

// The values of Options.Tier.
const (
	TierAuto   = "auto"
	TierHook   = string(probe.Hook)
	TierKernel = string(probe.Kernel)
)

// startProbes starts the probes of the tier that was asked for. A probe of the
// kernel tier that the machine refuses is left out, and named in r.refused;
// only if the kernel tier was demanded is that an error.
func (r *recording) startProbes(shared *probe.Recording) (map[*probe.Probe]probe.Watch, error) {
	watches := map[*probe.Probe]probe.Watch{}
	r.tier = probe.Hook
	var failed error
	for _, p := range probes.List {
		if p.Tier == probe.Kernel && r.Tier == TierHook {
			continue
		}
		watch, err := p.Start(shared)
		switch {
		case err == nil:
			watches[p] = watch
			if p.Tier == probe.Kernel {
				r.tier = probe.Kernel
			}
		case p.Tier == probe.Kernel:
			if r.refused == "" {
				r.refused = fmt.Sprintf("no %s probe of the kernel tier: %v; `dptrace doctor` says how to get it", p.Name, err)
			}
			if r.Tier == TierKernel && failed == nil {
				failed = &Failure{ExitRefused, fmt.Errorf("the kernel tier was demanded: %s: %w", p.Name, err)}
			}
		default:
			failed = fail(fmt.Errorf("%s: %w", p.Name, err))
		}
	}
	return watches, failed
}

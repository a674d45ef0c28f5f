package recorder

import (
	"errors"
	"fmt"
	"strings"

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

// wayOut ends what is said about a refusal.
const wayOut = "; `dptrace doctor` says how to get it"

// refusal is a probe of the kernel tier that this machine does not let run.
type refusal struct {
	probe string
	err   error
}

// startProbes starts the probes of the tier that was asked for. A probe of the
// kernel tier that the machine refuses is left out, and named in r.refused;
// only if the kernel tier was demanded is that an error. One that cannot exist
// here (probe.ErrAbsent) is no part of this machine's kernel tier.
func (r *recording) startProbes(shared *probe.Recording) error {
	r.tier = probe.Hook
	var refusals []refusal
	ordered, err := probes.InOrder(probes.List)
	if err != nil {
		return fail(err)
	}
	started := map[string]bool{}
	for _, p := range ordered {
		if p.Tier == probe.Kernel && r.Tier == TierHook {
			continue
		}
		err := r.loop.Add(p.Name, func() (probe.Watch, error) { return startProbe(p, shared, started) })
		switch {
		case err == nil:
			started[p.Name] = true
			if p.Tier == probe.Kernel {
				r.tier = probe.Kernel
			}
		case p.Tier == probe.Kernel:
			refusals = append(refusals, refusal{p.Name, err})
		default:
			return fail(fmt.Errorf("%s: %w", p.Name, err))
		}
	}
	r.refused = tellRefusals(r.tier, refusals)
	if r.Tier != TierKernel {
		return nil
	}
	for _, f := range refusals {
		if !errors.Is(f.err, probe.ErrAbsent) {
			return &Failure{ExitRefused, fmt.Errorf("the kernel tier was demanded and cannot be had: %s%s", probe.Refusal(f.err), wayOut)}
		}
	}
	if r.tier != probe.Kernel {
		return &Failure{ExitRefused, errors.New("the kernel tier was demanded, and this build has no probe of it for this machine")}
	}
	return nil
}

// startProbe starts a probe if those that it builds on have started.
func startProbe(p *probe.Probe, shared *probe.Recording, started map[string]bool) (probe.Watch, error) {
	for _, name := range p.After {
		if !started[name] {
			return probe.Watch{}, fmt.Errorf("the %s probe did not start", name)
		}
	}
	return p.Start(shared)
}

// tellRefusals says in one line what the machine refused, and why; "" if
// nothing. What stopped the first probe has stopped the others as well: they
// build on it.
func tellRefusals(reached probe.Tier, refusals []refusal) string {
	if len(refusals) == 0 {
		return ""
	}
	reason := probe.Refusal(refusals[0].err)
	if !errors.Is(refusals[0].err, probe.ErrAbsent) {
		reason += wayOut
	}
	if reached != probe.Kernel {
		return reason
	}
	var names []string
	for _, f := range refusals {
		names = append(names, f.probe)
	}
	return "without " + strings.Join(names, ", ") + ": " + reason
}

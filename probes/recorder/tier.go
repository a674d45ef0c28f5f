package recorder

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/probes"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
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

// startProbes starts the probes of the tier that was asked for; those that are Late only if
// it was demanded, else they will be as the target runs. A probe of the kernel tier that
// the machine refuses is left out, and named in r.refused; only if the kernel tier was
// demanded is that an error. One that cannot exist here (probe.ErrAbsent) is no part of
// this machine's kernel tier.
func (r *recording) startProbes() error {
	r.tier, r.started = probe.Hook, map[string]bool{}
	ordered, err := probes.InOrder(probes.List)
	if err != nil {
		return fail(err)
	}
	for _, p := range ordered {
		switch {
		case p.Tier == probe.Kernel && r.Tier == TierHook:
		case p.Late && r.Tier != TierKernel && r.missing(p) == nil:
			r.loop.Later(func() { r.startLate(p) })
		default:
			if err := r.startProbe(p); err != nil && p.Tier != probe.Kernel {
				return fail(fmt.Errorf("%s: %w", p.Name, err))
			}
		}
	}
	if r.Tier != TierKernel {
		return nil
	}
	for _, f := range r.refused {
		if !errors.Is(f.err, probe.ErrAbsent) {
			return &Failure{ExitRefused, fmt.Errorf("the kernel tier was demanded and cannot be had: %s%s", probe.Refusal(f.err), wayOut)}
		}
	}
	if r.tier != probe.Kernel {
		return &Failure{ExitRefused, errors.New("the kernel tier was demanded, and this build has no probe of it for this machine")}
	}
	return nil
}

// startProbe starts a probe, or notes why not.
func (r *recording) startProbe(p *probe.Probe) error {
	err := r.missing(p)
	if err == nil {
		err = r.loop.Add(p.Name, func() (probe.Watch, error) { return p.Start(r.shared) })
	}
	switch {
	case err == nil:
		r.started[p.Name] = true
		if p.Tier == probe.Kernel {
			r.tier = probe.Kernel
		}
	case p.Tier == probe.Kernel:
		r.refused = append(r.refused, refusal{p.Name, err})
	}
	return err
}

// startLate starts a probe while the target runs. It is to be earlier than torch: if it is not, as on
// a machine that gave us no processor, that is said.
func (r *recording) startLate(p *probe.Probe) {
	before := probe.ThreadCPU()
	err := r.startProbe(p)
	r.costs.began(probe.ThreadCPU() - before)
	if err != nil {
		r.tellRefused()
	} else if written(r.session.spool) {
		r.out.Append(traces.Lost{Head: now(), Source: "kernel", Reason: "torch was imported before the " + p.Name + " probe had started"})
	}
}

// missing names a probe that this one builds on and that did not start.
func (r *recording) missing(p *probe.Probe) error {
	for _, name := range p.After {
		if !r.started[name] {
			return fmt.Errorf("the %s probe did not start", name)
		}
	}
	return nil
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

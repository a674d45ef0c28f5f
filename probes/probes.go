// Package probes lists the probes: all that writes into a trace.
package probes

import (
	"fmt"

	"github.com/dptrace/dptrace/probes/cow"
	"github.com/dptrace/dptrace/probes/cuda"
	"github.com/dptrace/dptrace/probes/files"
	"github.com/dptrace/dptrace/probes/hook"
	"github.com/dptrace/dptrace/probes/offcpu"
	"github.com/dptrace/dptrace/probes/poll"
	"github.com/dptrace/dptrace/probes/positions"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/process"
	"github.com/dptrace/dptrace/probes/shm"
)

// List has one line for each folder that holds a probe, as `dptrace doctor` names
// them. They start InOrder.
var List = []*probe.Probe{
	&hook.Probe,
	&poll.Probe,
	&process.Probe,
	&cow.Probe,
	&files.Probe,
	&shm.Probe,
	&positions.Probe,
	&offcpu.Probe,
	&cuda.Probe,
}

// InOrder is the probes so that each comes after those that it names in After,
// and otherwise as they are listed.
func InOrder(list []*probe.Probe) ([]*probe.Probe, error) {
	ordered := make([]*probe.Probe, 0, len(list))
	placed := map[string]bool{}
	ready := func(p *probe.Probe) bool {
		for _, name := range p.After {
			if !placed[name] {
				return false
			}
		}
		return true
	}
	for len(ordered) < len(list) {
		before := len(ordered)
		for _, p := range list {
			if !placed[p.Name] && ready(p) {
				placed[p.Name] = true
				ordered = append(ordered, p)
			}
		}
		if len(ordered) == before {
			return nil, fmt.Errorf("%d of %d probes are listed twice, or wait for each other or for one that is not listed",
				len(list)-before, len(list))
		}
	}
	return ordered, nil
}

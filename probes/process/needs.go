package process

import "github.com/dptrace/dptrace/probes/probe"

var needs = probe.KernelNeeds

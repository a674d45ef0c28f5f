package cuda

import "github.com/dptrace/dptrace/probes/probe"

var needs = []probe.Need{{
	Name:  "uprobes on many functions at once",
	Gains: "one link for all of CUDA's functions; else one for each, which takes seconds to be removed",
	Try: func() probe.Trial {
		if err := haveMulti(); err != nil {
			return probe.Trial{Detail: err.Error(), Get: "Linux 6.6 or newer"}
		}
		return probe.Trial{Have: true, Detail: "the kernel knows them"}
	},
}}

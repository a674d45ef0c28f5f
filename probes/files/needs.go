package files

import "github.com/dptrace/dptrace/probes/probe"

var needs = []probe.Need{
	probe.Tracepoint("sys_exit", "each data file that a worker opens, however short; those that are open when the hook looks remain"),
}

package cow

import "github.com/dptrace/dptrace/probes/probe"

var needs = []probe.Need{
	probe.Tracepoint("page_fault_user", "memory-growth-cow by counted faults; it goes by /proc/self/pagemap of the workers then"),
	probe.Tracepoint("page_fault_kernel", "copies that system calls make, as read(2) into memory shared with the parent"),
}

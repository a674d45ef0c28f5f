// Package cow counts the pages that each forked process of the run copies from
// its parent by writing to them, and says what they are mapped for. The
// counting is done by bpf/cow.bpf.c.
package cow

import "github.com/dptrace/dptrace/probes/probe"

// Probe is bpf/cow.bpf.c. The tracepoints of page faults that tell reads from
// writes exist on x86-64 only; elsewhere the hook's view of
// /proc/self/pagemap remains.
var Probe = probe.Probe{
	Name:  "cow",
	Doc:   "pages that forked workers copy by writing to them (copy-on-write), exactly and where; from the kernel",
	Tier:  probe.Kernel,
	Needs: needs,
	After: []string{"process"},
	Late:  true,
	Start: start,
}

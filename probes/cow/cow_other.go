//go:build !amd64

package cow

import (
	"fmt"

	"github.com/dptrace/dptrace/probes/probe"
)

func start(*probe.Recording) (probe.Watch, error) {
	return probe.Watch{}, fmt.Errorf("%w: page faults have no tracepoint on this architecture; "+
		"copied pages are counted by /proc/self/pagemap, in the workers that have the hook", probe.ErrAbsent)
}

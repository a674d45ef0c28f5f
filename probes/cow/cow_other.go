//go:build !amd64

package cow

import (
	"errors"

	"github.com/dptrace/dptrace/probes/probe"
)

func start(*probe.Recording) (probe.Watch, error) {
	return nil, errors.New("this architecture has no tracepoint exceptions:page_fault_user; copied pages are counted by /proc/self/pagemap, in the workers that have the hook")
}

package procfs

import (
	"bytes"
	"fmt"
	"strconv"
)

// Schedstat reads /proc/PID/schedstat: for how many nanoseconds the thread that the
// process began with has run so far, and for how many it could have run and waited
// for a processor.
func Schedstat(pid int32) (ran, waited int64, err error) {
	b, err := Read(pid, "schedstat")
	if err != nil {
		return 0, 0, err
	}
	return parseSchedstat(b)
}

func parseSchedstat(b []byte) (ran, waited int64, err error) {
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("schedstat has %d fields", len(fields))
	}
	if ran, err = strconv.ParseInt(string(fields[0]), 10, 64); err != nil {
		return 0, 0, fmt.Errorf("schedstat: %w", err)
	}
	if waited, err = strconv.ParseInt(string(fields[1]), 10, 64); err != nil {
		return 0, 0, fmt.Errorf("schedstat: %w", err)
	}
	return ran, waited, nil
}

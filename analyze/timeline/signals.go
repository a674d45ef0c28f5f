package timeline

import "fmt"

// SignalName is SIGKILL and so on.
func SignalName(signal int32) string {
	if name := signalNames[signal]; name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", signal)
}

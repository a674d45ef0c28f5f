package procfs

import (
	"os"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

var needs = []probe.Need{
	{
		Name:  "/proc",
		Gains: "which processes there are, and which Pythons were not hooked",
		Try: func() probe.Trial {
			st, err := probe.ReadStat(int32(os.Getpid()))
			if err == nil && len(pids()) == 0 {
				err = os.ErrNotExist
			}
			if err != nil {
				return probe.Trial{Detail: err.Error(), Get: "mount -t proc proc /proc"}
			}
			return probe.Trial{Have: true, Detail: "this process is there as " + st.Comm}
		},
	},
	{
		Name:  "/proc/PID/smaps_rollup",
		Gains: "private and shared memory; resident memory remains",
		Try: func() probe.Trial {
			var row traces.Memory
			text, err := os.ReadFile("/proc/self/smaps_rollup")
			switch {
			case err != nil:
				return probe.Trial{Detail: err.Error(), Get: "Linux 4.14 or newer, with CONFIG_PROC_PAGE_MONITOR"}
			case !rollup(text, &row):
				return probe.Trial{Detail: "columns are missing", Get: "Linux 4.14 or newer"}
			}
			return probe.Trial{Have: true, Detail: "readable"}
		},
	},
}

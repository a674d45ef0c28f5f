package poll

import (
	"fmt"
	"os"
	"strings"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

var needs = []probe.Need{
	{
		Name:  "/proc",
		Gains: "which processes there are, and which Pythons were not hooked",
		Try: func() probe.Trial {
			st, err := procfs.ReadStat(int32(os.Getpid()))
			if err == nil && len(procfs.Pids()) == 0 {
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
	probe.Pagemap,
	{
		Name: "memory limit",
		Gains: "how close memory-growth-cow and dataset-copied-per-worker come to the limit, " +
			"and whether the out-of-memory killer ended a worker (worker-killed)",
		Try: func() probe.Trial {
			l := newLimits(int32(os.Getpid()))
			rows, _ := l.read()
			var found []string
			for _, r := range rows {
				text := fmt.Sprintf("%s %.1f GB", r.Scope, float64(r.Limit)/1e9)
				if r.Limit == 0 {
					text = r.Scope + " without a limit"
				}
				if r.OomKills < 0 {
					text += " (kills not counted)"
				}
				found = append(found, text)
			}
			switch {
			case len(rows) == 0:
				return probe.Trial{Detail: "neither a control group nor /proc/meminfo is readable", Get: "mount -t proc proc /proc"}
			case rows[0].Scope != "cgroup":
				return probe.Trial{
					Detail: "of the machine only: no control group with memory is visible in /proc/self/cgroup and /sys/fs/cgroup",
					Get:    "mount -t cgroup2 none /sys/fs/cgroup; in a container it is there by default",
				}
			}
			return probe.Trial{Have: true, Detail: strings.Join(found, ", ")}
		},
	},
}

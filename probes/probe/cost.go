package probe

import (
	"io"
	"time"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/traces"
)

// programCost is how long a run of the programs takes: now and then the kernel
// takes the time, which itself costs some.
type programCost struct {
	stats   io.Closer // open while it does
	next    time.Time // to begin or to end
	refused bool
}

const (
	measureFirst = 200 * time.Millisecond
	measureFor   = 100 * time.Millisecond
	measureEvery = 10 * time.Second // to begin and to cease interrupts all CPUs
)

func (c *programCost) stop() {
	if c.stats != nil {
		_ = c.stats.Close()
		c.stats = nil
	}
}

// measure lets the kernel begin and cease to take the time of the programs, of
// all probes at once. next is when it is to be called again.
func (c *programCost) measure(now time.Time) (next time.Time) {
	switch {
	case c.refused:
		return time.Time{}
	case c.next.IsZero():
		c.next = now.Add(measureFirst)
	case now.Before(c.next):
	case c.stats != nil:
		c.stop()
		c.next = now.Add(measureEvery - measureFor)
	default:
		stats, err := ebpf.EnableStats(bpfStatsRunTime)
		if err != nil { // CAP_SYS_ADMIN is missing: what the programs cost remains unknown
			c.refused = true
			return time.Time{}
		}
		c.stats, c.next = stats, now.Add(measureFor)
	}
	return c.next
}

// bpfStatsRunTime is BPF_STATS_RUN_TIME of include/uapi/linux/bpf.h.
const bpfStatsRunTime = 0

// overhead is what a probe has cost so far: the recorder's CPU time for it, and that
// of its programs for so many runs. The kernel's own count has those for all
// processes of the machine in it.
func (p *Programs) overhead(name string, t Turn, runs uint64) traces.Overhead {
	row := traces.Overhead{Head: traces.Head{TsNS: Now()}, Probe: name, CPUNS: int64(t.Began + t.Spent), StartNS: int64(t.Began)}
	var taken time.Duration
	var measured uint64
	for _, program := range p.Programs {
		if s, err := program.Stats(); err == nil {
			taken += s.Runtime
			measured += s.RunCount
		}
	}
	if measured > 0 {
		row.BpfRuns = runs
		row.BpfNS = int64(float64(taken) / float64(measured) * float64(runs))
	}
	return row
}

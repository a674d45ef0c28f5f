package poll

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

// Between two looks at the processors: the first ones are soon after each other, for
// short runs.
const (
	processorsFirst = 2 * time.Second
	processorsLate  = 10 * time.Second
)

// processors follows how much of the machine's processors the run may use.
type processors struct {
	groups []group // the target's own first, then those above it
	target int32
	row    traces.Cpu // the last one
	next   time.Time
}

func newProcessors(target int32) processors {
	p := processors{target: target}
	if membership, err := procfs.Read(target, "cgroup"); err == nil {
		p.groups = findGroups(string(membership), procfs.Mounts(), "cpu")
	}
	return p
}

// lookCPU writes a row if it is due.
func (w *watcher) lookCPU(now time.Time, always bool) {
	p := &w.cpu
	if p.target == 0 || !always && now.Before(p.next) {
		return
	}
	p.next = now.Add(processorsLate)
	if now.Sub(w.began) < youth {
		p.next = now.Add(processorsFirst)
	}
	row := p.read()
	row.Head = traces.Head{TsNS: probe.Now()}
	w.Rows.Append(row)
}

// read asks the kernel. What the target may use is kept once it is gone.
func (p *processors) read() traces.Cpu {
	row := traces.Cpu{Allowed: p.row.Allowed, Periods: -1, Throttled: -1, ThrottledNS: -1}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(int(p.target), &set); err == nil {
		row.Allowed = int32(set.Count())
	}
	row.Processors = int64(row.Allowed) * 1000
	for i := range p.groups {
		g := &p.groups[i]
		quota := g.quota()
		if quota <= 0 || row.Processors > 0 && quota >= row.Processors {
			continue
		}
		row.Processors, row.Path = quota, g.path
		row.Periods, row.Throttled, row.ThrottledNS = g.throttled()
	}
	row.IdleNS, row.Online = idle()
	p.row = row
	return row
}

// quota is how many thousandths of a processor the group may use; 0: it has no
// quota.
func (g *group) quota() int64 {
	var quota, period int64
	if g.v2 {
		b, err := os.ReadFile(path.Join(g.dir, "cpu.max"))
		fields := bytes.Fields(b)
		if err != nil || len(fields) != 2 || string(fields[0]) == "max" {
			return 0
		}
		quota, _ = strconv.ParseInt(string(fields[0]), 10, 64)
		period, _ = strconv.ParseInt(string(fields[1]), 10, 64)
	} else {
		quota, _ = g.number("", "cpu.cfs_quota_us")
		period, _ = g.number("", "cpu.cfs_period_us")
	}
	if quota <= 0 || period <= 0 {
		return 0
	}
	return max(quota*1000/period, 1)
}

// throttled is what cpu.stat says: periods, how many of them the group was stopped
// in, and for how long; -1 not known.
func (g *group) throttled() (periods, stopped, ns int64) {
	periods, stopped = field(g.dir, "cpu.stat", "nr_periods"), field(g.dir, "cpu.stat", "nr_throttled")
	if ns = field(g.dir, "cpu.stat", "throttled_usec"); ns >= 0 {
		return periods, stopped, ns * 1000
	}
	return periods, stopped, field(g.dir, "cpu.stat", "throttled_time")
}

// idle is the time that all processors of the machine had nothing to do, and how
// many they are; 0, 0: not known.
func idle() (ns int64, online int32) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 6 || !strings.HasPrefix(fields[0], "cpu"):
		case fields[0] == "cpu": // user nice system idle iowait …, in ticks
			for _, f := range fields[4:6] {
				n, _ := strconv.ParseInt(f, 10, 64)
				ns += n * int64(procfs.Tick)
			}
		default:
			online++
		}
	}
	return ns, online
}

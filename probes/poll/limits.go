package poll

import (
	"bytes"
	"cmp"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

const (
	// Between two looks: so long at first, and up to so long while usage hardly
	// moves.
	limitsEvery = 2 * time.Second
	limitsLate  = 4 * time.Second
	// A change of usage by less than this share of the limit is not worth a row.
	noticeable = 0.01
)

// group is a control group that accounts for memory.
type group struct {
	dir  string // where its files are
	path string // in its hierarchy, as /proc/PID/cgroup has it
	v2   bool
}

// limits follows how much memory the run may use, how much is used, and whom
// the out-of-memory killer has ended.
type limits struct {
	groups []group // the target's own first, then those above it
	next   time.Time
	pause  time.Duration
	kills  map[string]int64 // by scope, of the last row
	usage  map[string]int64
}

// look writes rows: all of them if always is set, else those that differ
// noticeably from the last.
func (w *watcher) look(now time.Time, always bool) {
	l := &w.limits
	if !always && now.Before(l.next) {
		return
	}
	l.pause = min(max(2*l.pause, limitsEvery), limitsLate)
	rows, host := l.read()
	for _, row := range rows {
		change := math.Abs(float64(row.Usage - l.usage[row.Scope]))
		notice := noticeable * float64(cmp.Or(row.Limit, host))
		if change > notice/4 {
			l.pause = limitsEvery
		}
		if !always && row.OomKills == l.kills[row.Scope] && change < notice {
			continue
		}
		l.usage[row.Scope], l.kills[row.Scope] = row.Usage, row.OomKills
		row.Head = traces.Head{TsNS: probe.Now()}
		w.Rows.Append(row)
	}
	l.next = now.Add(l.pause)
}

// ended looks whether the out-of-memory killer has ended the process that has
// just vanished. It counts before the process dies.
func (w *watcher) ended(now time.Time) {
	w.limits.next = time.Time{}
	w.look(now, false)
}

func noLimits() limits { return limits{kills: map[string]int64{}, usage: map[string]int64{}} }

func newLimits(target int32) limits {
	l := noLimits()
	membership, err := procfs.Read(target, "cgroup")
	if err != nil {
		return l
	}
	l.groups = findGroups(string(membership), procfs.Mounts(), "memory")
	return l
}

// findGroups gives the control group of a process that has a controller, from its
// /proc/PID/cgroup, and those above it, as far as they are visible here.
func findGroups(membership string, mounts []procfs.Mount, controller string) []group {
	member, v2 := procfs.Group(membership, controller)
	for _, m := range mounts {
		switch {
		case member == "":
		case v2 && m.Type == "cgroup2", !v2 && m.Type == "cgroup" && slices.Contains(strings.Split(m.Options, ","), controller):
			return upwards(member, m.Root, m.Point, v2)
		}
	}
	return nil
}

// upwards lists the groups from the one at path up to the root of the mount,
// which in a container is the container's own group.
func upwards(member, root, point string, v2 bool) []group {
	// Without a namespace of its own a container sees the path from the host's
	// root, and the mount begins at its group; with one both are "/".
	inside, ok := strings.CutPrefix(path.Clean(member)+"/", strings.TrimSuffix(root, "/")+"/")
	if !ok || strings.HasPrefix(member, "/..") { // it is not below what is mounted: the mount's root is all we can see
		inside = ""
	}
	inside = strings.Trim(inside, "/")
	var all []group
	for {
		all = append(all, group{dir: path.Join(point, inside), path: path.Join(root, inside), v2: v2})
		if inside == "" {
			return all
		}
		if inside = path.Dir(inside); inside == "." {
			inside = ""
		}
	}
}

// read gives the row of the tightest limit above the target, or of its own
// group with limit 0 if there is none, and the machine's.
func (l *limits) read() (rows []traces.Limit, machine int64) {
	host, ok := readHost()
	if machine = host.Limit; !ok {
		machine = math.MaxInt64
	}
	if g, limit := l.tightest(machine); g != nil {
		if usage, err := g.number("memory.current", "memory.usage_in_bytes"); err == nil {
			rows = append(rows, traces.Limit{Scope: "cgroup", Path: g.path, Limit: limit, Usage: usage, OomKills: l.killed(g)})
		}
	}
	if ok {
		rows = append(rows, host)
	}
	return rows, machine
}

// tightest finds the group whose limit is the smallest and smaller than the
// machine's memory; else the target's own, and 0: the machine limits it.
func (l *limits) tightest(machine int64) (tight *group, limit int64) {
	least := machine
	for i := range l.groups {
		if n, err := l.groups[i].number("memory.max", "memory.limit_in_bytes"); err == nil && n < least {
			tight, limit, least = &l.groups[i], n, n
		}
	}
	for i := 0; tight == nil && i < len(l.groups); i++ {
		if _, err := l.groups[i].number("memory.current", "memory.usage_in_bytes"); err == nil { // the topmost of v2 has no such file
			tight = &l.groups[i]
		}
	}
	return tight, limit
}

// killed is how many processes the out-of-memory killer has ended in a group. In
// version 1 each group counts its own alone: those on the way to the target are
// added. -1 not known.
func (l *limits) killed(g *group) int64 {
	if g.v2 {
		return field(g.dir, "memory.events", "oom_kill")
	}
	sum := int64(-1)
	for i := range l.groups {
		if n := field(l.groups[i].dir, "memory.oom_control", "oom_kill"); n >= 0 {
			sum = max(sum, 0) + n
		}
		if &l.groups[i] == g {
			break
		}
	}
	return sum
}

// number reads a file of one number; "max" is none.
func (g *group) number(v2, v1 string) (int64, error) {
	name := v1
	if g.v2 {
		name = v2
	}
	b, err := os.ReadFile(path.Join(g.dir, name))
	if err != nil {
		return 0, err
	}
	text := string(bytes.TrimSpace(b))
	if text == "max" {
		return math.MaxInt64, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

// field reads a number of a file of Fields; -1 if it is not there.
func field(dir, file, name string) int64 {
	b, err := os.ReadFile(path.Join(dir, file))
	if err != nil {
		return -1
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(procfs.Field(b, name), " kB"), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// readHost is the machine's row.
func readHost() (row traces.Limit, ok bool) {
	total, available := field("/proc", "meminfo", "MemTotal"), field("/proc", "meminfo", "MemAvailable")
	if total < 0 || available < 0 {
		return row, false
	}
	kills := field("/proc", "vmstat", "oom_kill")
	return traces.Limit{Scope: "host", Limit: total << 10, Usage: (total - available) << 10, OomKills: kills}, true
}

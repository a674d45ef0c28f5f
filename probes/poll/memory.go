package poll

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

const (
	firstSamples = time.Second // between two samples of a young process
	lateSamples  = 10 * time.Second
	youth        = time.Minute

	// Reading smaps_rollup walks the page tables of a process (17 ms for 1 GB of
	// small pages) and holds its mmap lock meanwhile. It is read from one process
	// so rarely that it costs it no more than this share of its time; stat, which
	// gives rss alone, comes between. A young worker is where memory grows.
	youngShare = 0.003
	lateShare  = 0.001
	soonest    = time.Second
	// What reading it from all of them may cost: a share of the CPU time of the
	// run, for memory grows where something is done; a smaller one of a core; and so
	// much besides, for short runs.
	measureShare  = 0.002
	measureIdle   = 0.0005
	measureCredit = 10 * time.Millisecond
	pageCost      = 66 * time.Nanosecond // of a page, in a process that was not read yet
)

var pageSize = int64(os.Getpagesize())

// memory is what is known of a process's memory, and when it is due to be
// measured.
type memory struct {
	last                   procfs.Stat
	looked                 time.Time // when last was read
	nextSample, nextRollup time.Time
	cost                   time.Duration // of the last reading of smaps_rollup; 0: there was none
}

// sample writes what stat said of the processes that are due and were just
// looked at.
func (w *watcher) sample(now time.Time) {
	for _, p := range w.procs {
		if p.looked.Equal(now) && !now.Before(p.nextSample) && !w.waiting(p, now) {
			w.Rows.Append(w.memory(p, now))
		}
	}
}

// waiting reports whether the target still is our helper.
func (w *watcher) waiting(p *process, now time.Time) bool {
	return p.pid == w.Target && p.exe == "" && now.Sub(p.seen) < startTime
}

// memory begins a row.
func (w *watcher) memory(p *process, now time.Time) traces.Memory {
	p.nextSample = now.Add(firstSamples)
	if now.Sub(p.seen) > youth {
		p.nextSample = now.Add(lateSamples)
	}
	proc, _ := w.Procs.Of(p.pid, p.start)
	row := traces.Memory{
		Head: traces.Head{TsNS: probe.Now(), Proc: proc.Number},
		Rss:  p.last.RSSPages * pageSize, CPUNS: int64(p.last.CPU), Threads: p.last.Threads, Source: "statm", ReadBytes: -1,
	}
	row.MainNS, row.DelayNS, _ = procfs.Schedstat(p.pid)
	if text, err := procfs.Read(p.pid, "io"); err == nil {
		if n, err := strconv.ParseInt(procfs.Field(text, "read_bytes"), 10, 64); err == nil {
			row.ReadBytes = n
		}
	}
	return row
}

// measure reads smaps_rollup of the processes that are due, those first that
// were never read, as far as that is affordable. The first reading of a process
// may cost as much again: what it has grown by is counted from there.
func (w *watcher) measure(now time.Time) {
	var due []*process
	used := w.endedCPU
	for _, p := range w.procs {
		if !p.gone.IsZero() {
			continue
		}
		used += p.last.CPU
		if !now.Before(p.nextRollup) && !w.waiting(p, now) {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(a, b *process) int { return a.nextRollup.Compare(b.nextRollup) })
	allowance := time.Duration(measureShare*float64(used)+measureIdle*float64(now.Sub(w.began))) + measureCredit
	for _, p := range due {
		cost, limit := p.cost, allowance
		if p.cost == 0 {
			cost, limit = estimate(p), allowance+measureCredit
		}
		if w.measured+cost <= limit {
			w.roll(p, now)
		}
	}
}

// estimate is what reading smaps_rollup of a process costs.
func estimate(p *process) time.Duration {
	return time.Duration(p.last.RSSPages)*pageCost + 50*time.Microsecond
}

// roll reads smaps_rollup of a process and writes a row.
func (w *watcher) roll(p *process, now time.Time) {
	before := probe.ThreadCPU()
	defer func() { w.measured += probe.ThreadCPU() - before }()
	text, err := procfs.Read(p.pid, "smaps_rollup")
	if err != nil { // not permitted, or it has just ended
		p.nextRollup = now.Add(youth)
		return
	}
	p.cost = max(probe.ThreadCPU()-before, time.Microsecond)
	share := lateShare
	if now.Sub(p.seen) < youth {
		share = youngShare
	}
	p.nextRollup = now.Add(max(soonest, time.Duration(float64(p.cost)/share)))
	st, err := procfs.ReadStat(p.pid)
	if err != nil || st.StartTicks != p.start {
		return
	}
	p.last = st
	row := w.memory(p, now)
	if rollup(text, &row) {
		row.Source = "smaps_rollup"
		w.Rows.Append(row)
	}
}

// rollup reads /proc/PID/smaps_rollup.
func rollup(text []byte, row *traces.Memory) bool {
	columns := map[string]*int64{
		"Rss": &row.Rss, "Pss": &row.Pss, "Private_Dirty": &row.PrivateDirty, "Private_Clean": &row.PrivateClean,
		"Shared_Dirty": &row.SharedDirty, "Shared_Clean": &row.SharedClean, "Anonymous": &row.Anonymous, "Swap": &row.Swap,
	}
	found := 0
	for key, value := range procfs.Fields(text) {
		column := columns[key]
		if column == nil {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
		if err != nil {
			return false
		}
		*column = kb << 10
		found++
	}
	return found == len(columns)
}

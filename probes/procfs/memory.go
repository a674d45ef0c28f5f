package procfs

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

const (
	firstSamples = time.Second // between two samples of a young process
	lateSamples  = 10 * time.Second
	youth        = time.Minute
	// smaps_rollup is read from one process so rarely that it costs it no more
	// than this share of its time; statm, which gives rss alone, comes between.
	rollupShare = 0.001
)

var pageSize = int64(os.Getpagesize())

// memory is when a process is due to be measured.
type memory struct {
	nextSample, nextRollup time.Time
}

func (w *watcher) sample(p *process, st probe.Stat, now time.Time) {
	if now.Before(p.nextSample) {
		return
	}
	p.nextSample = now.Add(firstSamples)
	if now.Sub(p.seen) > youth {
		p.nextSample = now.Add(lateSamples)
	}
	proc, _ := w.Procs.Of(p.pid, p.start)
	row := traces.Memory{
		Head: traces.Head{TsNS: probe.Now(), Proc: proc.Number},
		Rss:  st.RSSPages * pageSize, CPUNS: int64(st.CPU), Threads: st.Threads, Source: "statm",
	}
	if !now.Before(p.nextRollup) {
		before := time.Now()
		text, err := probe.ReadProc(p.pid, "smaps_rollup")
		cost := time.Since(before)
		p.nextRollup = now.Add(time.Duration(float64(cost) / rollupShare))
		if err == nil && rollup(text, &row) {
			row.Source = "smaps_rollup"
		} else {
			p.nextRollup = now.Add(time.Minute) // not permitted, or the process has just ended
		}
	}
	w.Rows.Append(row)
}

// rollup reads /proc/PID/smaps_rollup.
func rollup(text []byte, row *traces.Memory) bool {
	columns := map[string]*int64{
		"Rss": &row.Rss, "Pss": &row.Pss, "Private_Dirty": &row.PrivateDirty, "Private_Clean": &row.PrivateClean,
		"Shared_Dirty": &row.SharedDirty, "Shared_Clean": &row.SharedClean, "Anonymous": &row.Anonymous, "Swap": &row.Swap,
	}
	found := 0
	for line := range bytes.Lines(text) {
		key, value, ok := bytes.Cut(line, []byte(":"))
		column := columns[string(key)]
		if !ok || column == nil {
			continue
		}
		kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 10, 64)
		if err != nil {
			return false
		}
		*column = kb << 10
		found++
	}
	return found == len(columns)
}

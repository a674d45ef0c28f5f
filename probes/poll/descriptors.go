package poll

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

const (
	soonDescriptors = 100 * time.Millisecond // between two looks at a count that nears its limit
	lateDescriptors = 2 * time.Second
	near            = 20 // looks, as many as are left until the limit at the pace of the last, at which the next comes soon

	// A change by less is not worth a row, of the limit or of the last row, for so
	// long, or such a share of the process' age: that it stays is worth knowing, too.
	changedOfLimit = 0.02
	changedOfLast  = 0.1
	unchanged      = 250 * time.Millisecond
	unchangedShare = 0.05
	mostAsked      = 64 // descriptors that are asked what they are
)

// descriptors is what is known of a process' open files.
type descriptors struct {
	next time.Time // to look
	seen time.Time // when it was looked at
	open int64
	told int64     // of the last row; 0: there is none
	row  time.Time // when that was written
	fast bool      // it nears its limit so fast that the next look cannot wait for a round
}

// count looks at the descriptors of those hooked processes that are due: often at
// those that fill up.
func (w *watcher) count(now time.Time) {
	for _, p := range w.procs {
		if !p.gone.IsZero() || !p.python || now.Before(p.fds.next) {
			continue
		}
		w.countOf(p, now)
	}
}

func (w *watcher) countOf(p *process, now time.Time) {
	d := &p.fds
	d.next, d.fast = now.Add(lateDescriptors), false
	if now.Sub(p.seen) < startTime {
		d.next = now.Add(soonDescriptors)
	}
	known, _ := w.Procs.Of(p.pid, p.start)
	open, ok := openCount(p.pid)
	if !known.Hooked || !ok || open == 0 { // 0: it is ending
		return
	}
	soft, hard := limitsOf(p.pid)
	if grown := open - d.open; !d.seen.IsZero() && soft > 0 && grown > 0 && (soft-open)/grown <= near {
		d.next, d.fast = now.Add(soonDescriptors), true
	}
	d.open, d.seen = open, now
	change := max(open-d.told, d.told-open)
	small := float64(change) < changedOfLimit*float64(soft) || float64(change) < changedOfLast*float64(d.told)
	if d.told > 0 && small && now.Sub(d.row) < max(unchanged, time.Duration(unchangedShare*float64(now.Sub(p.seen)))) {
		return
	}
	row := traces.Descriptor{Head: traces.Head{TsNS: probe.Now(), Proc: known.Number}, Open: open, Limit: soft, Hard: hard, Refused: -1}
	if !small && d.told > 0 {
		ask(p.pid, &row)
	}
	d.told, d.row = open, now
	w.Rows.Append(row)
}

// openCount is how many descriptors a process has. Since Linux 6.2 the folder's
// size says it.
func openCount(pid int32) (int64, bool) {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	var st unix.Stat_t
	if unix.Stat(folder, &st) != nil {
		return 0, false
	}
	if st.Size > 0 {
		return st.Size, true
	}
	f, err := os.Open(folder)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	return int64(len(names)), err == nil
}

// limitsOf is the soft and the hard RLIMIT_NOFILE of a process; 0 not known.
func limitsOf(pid int32) (soft, hard int64) {
	var limit unix.Rlimit
	if unix.Prlimit(int(pid), unix.RLIMIT_NOFILE, nil, &limit) == nil {
		return int64(limit.Cur), int64(limit.Max)
	}
	text, err := procfs.Read(pid, "limits") // of another user's process
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			if f := strings.Fields(rest); len(f) >= 2 {
				soft, _ = strconv.ParseInt(f[0], 10, 64)
				hard, _ = strconv.ParseInt(f[1], 10, 64)
			}
		}
	}
	return soft, hard
}

// ask finds out what the highest descriptors are: the lowest numbers are given
// out first, so that what a process keeps comes to be at the end.
func ask(pid int32, row *traces.Descriptor) {
	folders := map[string]int{}
	for fd := row.Open + mostAsked; fd >= 0 && row.Looked < min(mostAsked, row.Open); fd-- {
		target := procfs.Link(pid, fmt.Sprintf("fd/%d", fd))
		if target == "" {
			continue
		}
		row.Looked++
		switch {
		case strings.HasPrefix(target, "/dev/shm/torch_"):
			row.Shared++
		case strings.HasPrefix(target, "socket:"):
			row.Socket++
		case strings.HasPrefix(target, "pipe:"):
			row.Pipe++
		case strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "/dev/"):
			row.File++
			folder := filepath.Dir(target)
			folders[folder]++
			if row.Sample == "" || folders[folder] > folders[filepath.Dir(row.Sample)] {
				row.Sample = target
			}
		default:
			row.Other++
		}
	}
}

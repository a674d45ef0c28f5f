// Package writers is which lines of the program write to memory that workers share
// with the main process, and so copy it: what Python was executing at one in 64 of the
// faults, as the kernel tier saw.
package writers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Source is the writers of a run. It proves nothing: what is copied, the kernel counts.
var Source = &collect.Source[*Writers]{
	Name:   "who writes to inherited memory",
	Tables: []string{"call_site", "touch"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Writers] { return &Writers{map[*traces.Part]*part{}} },
}

// Writers is the evidence of Source.
type Writers struct{ parts map[*traces.Part]*part }

type part struct {
	sites map[uint32][]timeline.Frame
	seen  map[uint32]map[uint32]uint64 // by process and site
}

const mostSites = 1 << 16 // of a part

func (w *Writers) part(p *traces.Part) *part {
	if w.parts[p] == nil {
		w.parts[p] = &part{map[uint32][]timeline.Frame{}, map[uint32]map[uint32]uint64{}}
	}
	return w.parts[p]
}

// Add takes the rows of one batch.
func (w *Writers) Add(b traces.Batch) {
	p := w.part(b.Part)
	switch rows := b.Rows.(type) {
	case []traces.CallSite:
		for i := range rows {
			if len(p.sites) < mostSites {
				p.sites[rows[i].Site] = timeline.Frames(rows[i].Frames)
			}
		}
	case []traces.Touch:
		for i := range rows {
			t := &rows[i]
			if p.seen[t.Proc] == nil {
				p.seen[t.Proc] = map[uint32]uint64{}
			}
			if p.seen[t.Proc][t.Site] > 0 || len(p.seen[t.Proc]) < mostSites {
				p.seen[t.Proc][t.Site] = max(p.seen[t.Proc][t.Site], t.Seen)
			}
		}
	}
}

// Merge takes over what was collected of other parts.
func (w *Writers) Merge(other collect.Collector[*Writers]) {
	maps.Copy(w.parts, other.(*Writers).parts)
}

// Build has nothing to do.
func (w *Writers) Build(*collect.Evidence) *Writers { return w }

// Lines are where faults were seen.
type Lines struct {
	Looks uint64 // at faults
	Own   uint64 // of them in dptrace's hook
	at    map[string]uint64
}

// Of processes.
func (w *Writers) Of(processes []*timeline.Process) *Lines {
	l := &Lines{at: map[string]uint64{}}
	for _, process := range processes {
		p := w.parts[process.Part]
		if p == nil {
			continue
		}
		for site, seen := range p.seen[process.Proc] {
			frames := p.sites[site]
			l.Looks += seen
			if len(frames) > 0 && strings.Contains(frames[0].File, "/dptrace_hook/") {
				l.Own += seen
				continue
			}
			if at := timeline.Caller(process.Cwd, frames, 1); at != "" {
				l.at[at] += seen
			}
		}
	}
	return l
}

// enough looks to name a line, and the share of them that it has at the least.
const (
	enough  = 8
	leading = 0.05
)

// String is 112 of 131 at data.py:16 (Photos.__getitem__); "" nothing is known, or no line stands out.
func (l *Lines) String() string {
	if l.Looks < enough {
		return ""
	}
	const most = 3
	var parts []string
	often := func(a, b string) int { return cmp.Or(cmp.Compare(l.at[b], l.at[a]), cmp.Compare(a, b)) }
	for _, at := range slices.SortedFunc(maps.Keys(l.at), often) {
		if len(parts) < most && float64(l.at[at]) >= leading*float64(l.Looks) {
			parts = append(parts, fmt.Sprintf("%s at %s", words.Number(int64(l.at[at])), at))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := fmt.Sprintf("Of %s of these faults that were looked at, Python was executing: %s", words.Number(int64(l.Looks)), words.List(parts))
	if l.Own > 0 {
		text += fmt.Sprintf("; %s were dptrace's own hook's", words.Number(int64(l.Own)))
	}
	return text + "."
}

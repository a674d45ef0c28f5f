package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// LimitSource is how much memory there is, and how much of it may be used.
var LimitSource = &collect.Source[*Limits]{
	Name:   "memory limits",
	Tables: []string{"host", "limit"},
	Proof:  []string{"limit"},
	New:    func() collect.Collector[*Limits] { return &Limits{map[*traces.Part]*limitRows{}} },
}

// Limits is the evidence of LimitSource.
type Limits struct{ of map[*traces.Part]*limitRows }

// limitRows are those of one part.
type limitRows struct {
	host   traces.Host // the last row
	limits []traces.Limit
}

// Add takes the rows of one batch.
func (l *Limits) Add(b traces.Batch) {
	if l.of[b.Part] == nil {
		l.of[b.Part] = &limitRows{}
	}
	switch rows := b.Rows.(type) {
	case []traces.Host:
		for i := range rows {
			l.of[b.Part].host = rows[i]
		}
	case []traces.Limit:
		l.of[b.Part].limits = append(l.of[b.Part].limits, rows...)
	}
}

// Merge takes over the limits of other parts.
func (l *Limits) Merge(other collect.Collector[*Limits]) { maps.Copy(l.of, other.(*Limits).of) }

// Build is the rows as they were collected.
func (l *Limits) Build(*collect.Evidence) *Limits { return l }

// Recorded reports whether a part is of a version that writes down the limits,
// and looks for what workers inherit.
func (l *Limits) Recorded(part *traces.Part) bool {
	return l.of[part] != nil && len(l.of[part].limits) > 0
}

// Limit is how much memory there may be used: by a control group or on a host.
type Limit struct {
	Scope string // cgroup, host
	Path  string
	Bytes int64
	Usage int64 // when it was asked for last; -1 unknown
	Asked int64 // ns
	Ref   finding.Ref
	Load  int64 // what is compared with it
}

// Share of the limit that the load takes.
func (l Limit) Share() float64 {
	if l.Bytes <= 0 {
		return 0
	}
	return float64(l.Load) / float64(l.Bytes)
}

// Group is the control group; "" it is the machine.
func (l Limit) Group() string {
	if l.Scope == "cgroup" {
		return l.Path
	}
	return ""
}

type limitKey struct{ boot, scope, path string }

func (k limitKey) compare(o limitKey) int {
	return cmp.Or(cmp.Compare(k.boot, o.boot), cmp.Compare(k.scope, o.scope), cmp.Compare(k.path, o.path))
}

// Tightest is the limit of which some loads take the largest share: loads of one
// host, or of one control group on it, count together. ok is false if nothing is
// known. Usage is as of the time until.
func (l *Limits) Tightest(loads map[*timeline.Loader]int64, until int64) (tightest Limit, ok bool) {
	limits := map[limitKey]*Limit{}
	for _, loader := range slices.SortedFunc(maps.Keys(loads), byProcess) {
		for key, limit := range l.over(loader.Process, until) {
			if limits[key] == nil {
				limits[key] = &limit
			}
			limits[key].Load += loads[loader]
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(limits), limitKey.compare) {
		limit := *limits[k]
		if !ok || limit.Share() > tightest.Share() || limit.Share() == tightest.Share() && limit.Bytes < tightest.Bytes {
			tightest, ok = limit, true
		}
	}
	return tightest, ok
}

func byProcess(a, b *timeline.Loader) int {
	return cmp.Or(cmp.Compare(a.Process.Part.Name, b.Process.Part.Name), cmp.Compare(a.Process.Proc, b.Process.Proc))
}

// over is the limits that a process is under.
func (l *Limits) over(p *timeline.Process, until int64) map[limitKey]Limit {
	out := map[limitKey]Limit{}
	rows := l.of[p.Part]
	if rows == nil {
		return out
	}
	boot := cmp.Or(p.Part.BootID, p.Part.Name)
	if rows.host.MemTotal > 0 {
		out[limitKey{boot, "host", ""}] = Limit{Scope: "host", Bytes: rows.host.MemTotal, Usage: -1, Ref: ref(p.Part, "host", rows.host.Seq)}
	}
	for i := range rows.limits {
		r := &rows.limits[i]
		k := limitKey{boot, r.Scope, r.Path}
		if r.Scope == "host" {
			k.path = ""
		}
		old, ok := out[k]
		if r.Limit <= 0 || ok && old.Usage >= 0 && r.TsNS > until {
			continue
		}
		out[k] = Limit{Scope: r.Scope, Path: r.Path, Bytes: r.Limit, Usage: r.Usage, Asked: r.TsNS, Ref: ref(p.Part, "limit", r.Seq)}
	}
	return out
}

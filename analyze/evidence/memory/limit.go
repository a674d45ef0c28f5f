package memory

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

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

type limitKey struct{ boot, scope, path string }

// Tightest is the limit of which some loads take the largest share: loads of one
// host, or of one control group on it, count together. ok is false if nothing is
// known. Usage is as of the time until.
func (m *Memory) Tightest(loads map[*timeline.Loader]int64, until int64) (tightest Limit, ok bool) {
	limits := map[limitKey]*Limit{}
	loaders := make([]*timeline.Loader, 0, len(loads))
	for l := range loads {
		loaders = append(loaders, l)
	}
	slices.SortFunc(loaders, func(a, b *timeline.Loader) int {
		return cmp.Or(cmp.Compare(a.Process.Part.Name, b.Process.Part.Name), cmp.Compare(a.Process.Proc, b.Process.Proc))
	})
	for _, l := range loaders {
		for key, limit := range m.limitsOf(l, until) {
			if limits[key] == nil {
				limits[key] = &limit
			}
			limits[key].Load += loads[l]
		}
	}
	keys := make([]limitKey, 0, len(limits))
	for k := range limits {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b limitKey) int {
		return cmp.Or(cmp.Compare(a.boot, b.boot), cmp.Compare(a.scope, b.scope), cmp.Compare(a.path, b.path))
	})
	for _, k := range keys {
		if l := *limits[k]; !ok || l.Share() > tightest.Share() || l.Share() == tightest.Share() && l.Bytes < tightest.Bytes {
			tightest, ok = l, true
		}
	}
	return tightest, ok
}

func (m *Memory) limitsOf(l *timeline.Loader, until int64) map[limitKey]Limit {
	tp := l.Process.Part
	p := m.parts[tp]
	out := map[limitKey]Limit{}
	if p == nil {
		return out
	}
	boot := cmp.Or(tp.BootID, tp.Name)
	if p.total > 0 {
		out[limitKey{boot, "host", ""}] = Limit{Scope: "host", Bytes: p.total, Usage: -1, Ref: p.ref(l, "host", p.totalAt)}
	}
	for _, r := range p.limits {
		k := limitKey{boot, r.Scope, r.Path}
		if r.Scope == "host" {
			k.path = ""
		}
		old, ok := out[k]
		if r.Limit <= 0 || ok && old.Usage >= 0 && r.TsNS > until {
			continue
		}
		out[k] = Limit{Scope: r.Scope, Path: r.Path, Bytes: r.Limit, Usage: r.Usage, Asked: r.TsNS, Ref: p.ref(l, "limit", r.Seq)}
	}
	return out
}

// Since reports whether the trace is of a version that looks for what workers
// inherit: one that writes down the limits.
func (m *Memory) Since(l *timeline.Loader) bool {
	p := m.parts[l.Process.Part]
	return p != nil && len(p.limits) > 0
}

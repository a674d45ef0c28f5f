// Package pinning is what the step that pins batches has left as it was.
package pinning

import (
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is of loaders whose batches are pinned.
var Source = &collect.Source[*Looks]{
	Name:   "pinned batches",
	Tables: []string{"pin"},
	Proof:  []string{"pin", "loader"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Looks] { return &collector{map[key][]traces.Pin{}} },
}

type key struct {
	part         *traces.Part
	proc, object uint32
}

type collector struct{ rows map[key][]traces.Pin }

// mostLooks of one DataLoader are kept: more than the hook writes.
const mostLooks = 256

func (c *collector) Add(b traces.Batch) {
	rows, _ := b.Rows.([]traces.Pin)
	for _, r := range rows {
		k := key{b.Part, r.Proc, r.Loader}
		if len(c.rows[k]) < mostLooks {
			c.rows[k] = append(c.rows[k], r)
		}
	}
}

func (c *collector) Merge(other collect.Collector[*Looks]) {
	maps.Copy(c.rows, other.(*collector).rows)
}

func (c *collector) Build(e *collect.Evidence) *Looks {
	l := &Looks{map[*timeline.Loader][]Look{}}
	for _, loader := range collect.Of(e, timeline.Source).Loaders {
		for i := range loader.Objects {
			for _, r := range c.rows[key{loader.Process.Part, loader.Process.Proc, loader.Objects[i].Loader}] {
				l.of[loader] = append(l.of[loader], Look{r, loader})
			}
		}
		slices.SortStableFunc(l.of[loader], func(a, b Look) int { return int(min(max(a.TsNS-b.TsNS, -1), 1)) })
	}
	return l
}

// Looks is the evidence of Source.
type Looks struct{ of map[*timeline.Loader][]Look }

// Look at one batch.
type Look struct {
	traces.Pin
	Of *timeline.Loader
}

// At loaders' batches, in their order on each.
func (l *Looks) At(loaders timeline.Ranks) (all []Look) {
	for _, loader := range loaders {
		all = append(all, l.of[loader]...)
	}
	return all
}

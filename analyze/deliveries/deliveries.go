// Package deliveries is evidence/batches under the names of before, for the rules
// that are not changed to the frame yet.
package deliveries

import (
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is what each worker fetched in each pass.
var Source = &collect.Source[*Deliveries]{
	Name: "deliveries",
	Uses: []collect.Any{batches.Requested, batches.Delivered, batches.Fetched},
	New:  func() collect.Collector[*Deliveries] { return &Deliveries{} },
}

// Tables is what tells the batches of a pass; a gap in one of them is never
// clean.
var Tables = []string{"process", "loader", "pass", "worker", "batch_put", "batch_fetch", "batch_next"}

// Deliveries is the evidence of Source.
type Deliveries struct {
	fetched map[*timeline.WorkerPass]*Fetched
}

// Fetched is what one worker fetched in one pass.
type Fetched = batches.Fetches

func (d *Deliveries) Add(traces.Batch)                     {}
func (d *Deliveries) Merge(collect.Collector[*Deliveries]) {}

func (d *Deliveries) Build(e *collect.Evidence) *Deliveries {
	return &Deliveries{collect.Of(e, batches.Fetched)}
}

// Fetches is what each worker fetched in each pass. A worker is missing if no
// batch of it is in the trace.
func (d *Deliveries) Fetches(*timeline.Timeline) map[*timeline.WorkerPass]*Fetched { return d.fetched }

// Group is one loader on all ranks that have it.
type Group struct {
	ID      int
	Loaders timeline.Ranks
}

// Groups sorts the loaders of a timeline.
func Groups(t *timeline.Timeline) []*Group {
	var groups []*Group
	for _, ranks := range t.ByLoader() {
		groups = append(groups, &Group{ID: ranks.ID(), Loaders: ranks})
	}
	return groups
}

// Gap says what is missing from some tables about the loader, on all its ranks.
func (g *Group) Gap(t *timeline.Timeline, tables []string) string {
	return g.Loaders.Distinct(func(l *timeline.Loader) string { return t.Gap(l, tables) })
}

// Finding about the loader, with what all rules say alike.
func (g *Group) Finding(t *timeline.Timeline, rule, dp string) finding.Finding {
	l := g.Loaders[0]
	return finding.Finding{Rule: rule, DP: dp, Loader: finding.Loader{ID: g.ID, At: l.At(), Role: string(g.Loaders.Role())}, Proof: "hook",
		Verify: t.Verify(rule)}
}

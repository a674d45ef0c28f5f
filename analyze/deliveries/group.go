package deliveries

import (
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

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

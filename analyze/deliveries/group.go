package deliveries

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Group is one loader on all ranks that have it.
type Group struct {
	ID      int
	Loaders []*timeline.Loader // by rank
}

// Groups sorts the loaders of a timeline.
func Groups(t *timeline.Timeline) []*Group {
	var groups []*Group
	for _, l := range t.Loaders { // sorted by ID, then rank
		if len(groups) == 0 || groups[len(groups)-1].ID != l.ID {
			groups = append(groups, &Group{ID: l.ID})
		}
		g := groups[len(groups)-1]
		g.Loaders = append(g.Loaders, l)
	}
	return groups
}

// Role of a loader that may have several ranks.
func (g *Group) Role() timeline.Role {
	role := timeline.Unknown
	for _, l := range g.Loaders {
		if l.Role == timeline.Train || role == timeline.Unknown {
			role = l.Role
		}
	}
	return role
}

// Gap says what is missing from some tables about the loader, on all its ranks.
func (g *Group) Gap(t *timeline.Timeline, tables []string) string {
	var gaps []string
	for _, l := range g.Loaders {
		if gap := t.Gap(l, tables); gap != "" && !slices.Contains(gaps, gap) {
			gaps = append(gaps, gap)
		}
	}
	return strings.Join(gaps, "; ")
}

// Finding about the loader, with what all rules say alike.
func (g *Group) Finding(t *timeline.Timeline, rule, dp string) finding.Finding {
	l := g.Loaders[0]
	command := "python ..."
	if len(t.Command) > 0 {
		command = strings.Join(t.Command, " ")
	}
	return finding.Finding{Rule: rule, DP: dp, Loader: finding.Loader{ID: g.ID, At: l.At(), Role: string(g.Role())}, Proof: "hook",
		Verify: "Record again: dptrace record -- " + command + " and see that the report lists " + rule + " as clean for this loader."}
}

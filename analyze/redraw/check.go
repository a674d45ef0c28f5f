package redraw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Tables is what all three rules read; a gap in one of them is never clean.
var Tables = []string{"process", "loader", "pass", "worker", "batch_put", "batch_fetch", "batch_next", "rng_slot", "rng_state"}

// Outcome is what a rule can say about one loader.
type Outcome struct {
	Rule string
	Hits []*Hit
	// Compared is how many streams were compared with another that they must
	// differ from; 0 says that there was nothing to compare, and Nothing why.
	Compared int
	Nothing  string
}

// Check writes the loader's line of the rule.
func (g *Group) Check(t *timeline.Timeline, s *draws.Streams, j Outcome) finding.Check {
	c := finding.Check{Rule: j.Rule, Loader: g.ID}
	if Best(j.Hits) > finding.Note {
		c.Status = finding.Found
		c.Reason = "the same numbers from " + Names(j.Hits)
		return c
	}
	c.Status = finding.CannotTell
	var gaps []string
	for _, l := range g.Loaders {
		if gap := t.Gap(l, Tables); gap != "" && !slices.Contains(gaps, gap) {
			gaps = append(gaps, gap)
		}
	}
	switch unfollowed, near := g.left(); {
	case len(gaps) > 0:
		c.Reason = strings.Join(gaps, "; ")
	case s.Nameless > 0:
		c.Reason = fmt.Sprintf("%d states are of generators whose names were lost", s.Nameless)
	case near > 0:
		c.Reason = fmt.Sprintf("records were lost next to %d fetches", near)
	case unfollowed > 0:
		c.Reason = fmt.Sprintf("so much was drawn that %d fetches were left out of the comparison", unfollowed)
	case j.Compared > 0:
		c.Status = finding.Clean
		c.Reason = fmt.Sprintf("%d streams, all distinct", j.Compared)
		if len(j.Hits) > 0 {
			c.Reason = "no more than a note on " + Names(j.Hits)
		}
	case j.Nothing != "":
		c.Reason = j.Nothing
	default:
		c.Reason = g.nothing()
	}
	return c
}

// left counts the fetches that were not looked at.
func (g *Group) left() (unfollowed, gaps int) {
	for _, drawn := range g.Draws {
		for _, d := range drawn {
			unfollowed += d.Unfollowed
			gaps += d.Gaps
		}
	}
	return
}

// nothing says why no draws could be compared.
func (g *Group) nothing() string {
	var rare, reseeded, ordering []*draws.Draws
	for _, drawn := range g.Draws {
		for _, d := range drawn {
			switch {
			case d.Reseeded > 0 && !d.Data():
				reseeded = append(reseeded, d)
			case d.Ordering && d.Drew == 0 && d.OrderDraws:
				ordering = append(ordering, d)
			case d.Drew > 0 && !d.Data():
				rare = append(rare, d)
			}
		}
	}
	switch {
	case len(reseeded) > 0:
		return words.List(draws.Paths(reseeded)) + ": seeded anew inside of the fetches, so its draws cannot be followed"
	case len(rare) > 0:
		return words.List(draws.Paths(rare)) + ": drawn from in fewer than half of the fetches"
	case len(ordering) > 0:
		return words.List(draws.Paths(ordering)) + ": drawn from before the first sample only"
	}
	return "nothing random, or a generator that dptrace cannot reach"
}

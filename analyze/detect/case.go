package detect

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Case is what a rule judges: one loader on all ranks that have it, or a whole
// run.
type Case struct {
	*timeline.Timeline
	Loaders timeline.Ranks // by rank; nil: the whole run

	rule     *Rule
	evidence *collect.Evidence
}

// Of is the evidence of a source that the case's rule names.
func Of[E any](c *Case, s *collect.Source[E]) E { return collect.Of(c.evidence, s) }

// ID of the loader; 0: the case is a whole run.
func (c *Case) ID() int {
	if c.Loaders == nil {
		return 0
	}
	return c.Loaders.ID()
}

// First is the loader on its first rank.
func (c *Case) First() *timeline.Loader { return c.Loaders[0] }

// Passes is those of the loader on all ranks, rank by rank.
func (c *Case) Passes() (all []*timeline.Pass) {
	for _, l := range c.Loaders {
		all = append(all, l.Passes...)
	}
	return all
}

// loader of a finding or a check.
func (c *Case) loader() finding.Loader {
	if c.Loaders == nil {
		return finding.Loader{}
	}
	return finding.Loader{ID: c.ID(), At: c.First().At(), Role: string(c.Loaders.Role())}
}

// Gapped is evidence that knows of gaps beyond the rows that are lost: Gap says
// what it could not follow of a loader (nil: of the whole run), or "".
type Gapped interface {
	Gap(timeline.Ranks) string
}

// gap is what is missing of what the rule looks at, or "".
func (c *Case) gap() string {
	tables, inside := collect.Proof(c.rule.Sources)
	var gaps []string
	if c.Loaders == nil {
		gaps = c.gapsOfRun(tables)
	}
	for _, l := range c.Loaders {
		if inside {
			gaps = append(gaps, c.Gap(l, tables))
		} else {
			gaps = append(gaps, c.Losses(l, tables))
		}
	}
	c.evidence.Each(c.rule.Sources, func(evidence any) {
		if g, ok := evidence.(Gapped); ok {
			gaps = append(gaps, g.Gap(c.Loaders))
		}
	})
	var once []string
	for _, g := range gaps {
		if g != "" && !slices.Contains(once, g) {
			once = append(once, g)
		}
	}
	return strings.Join(once, "; ")
}

// gapsOfRun is what is missing of all processes of all parts.
func (c *Case) gapsOfRun(tables []string) (gaps []string) {
	of := map[*traces.Part][]*timeline.Process{}
	var parts []*traces.Part
	for _, p := range c.Processes {
		if of[p.Part] == nil {
			parts = append(parts, p.Part)
		}
		of[p.Part] = append(of[p.Part], p)
	}
	for _, part := range parts {
		gaps = append(gaps, c.LossesOf(part, of[part], tables))
	}
	return gaps
}

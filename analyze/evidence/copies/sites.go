package copies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Site is a line of the program that asks for copies.
type Site struct {
	At      string // timeline.Caller
	Copies  int
	blocked int64
}

// asked gives the lines that ask for copies, as far as it was looked at.
func (p *partRows) asked(all []copied, cwd string) (sites []Site) {
	at := map[uint32]string{}
	sums := map[string]*Site{}
	for i := range all {
		c := &all[i]
		place, known := at[c.site]
		if !known {
			place = timeline.Caller(cwd, timeline.Frames(p.sites[c.site]), 2)
			at[c.site] = place
		}
		if place == "" {
			continue
		}
		if sums[place] == nil {
			sums[place] = &Site{At: place}
		}
		sums[place].Copies++
		sums[place].blocked += c.blocked()
	}
	for _, s := range sums {
		sites = append(sites, *s)
	}
	slices.SortFunc(sites, func(a, b Site) int { return cmp.Or(cmp.Compare(b.blocked, a.blocked), cmp.Compare(a.At, b.At)) })
	return sites
}

// Asked says which lines of the program ask for the copies of a class, for a finding: nothing, or one piece of evidence.
func (k *Rank) Asked(class Class) []finding.Evidence {
	c := k.Cost(class)
	looked := 0
	var parts []string
	for i, s := range c.Sites {
		if looked += s.Copies; i < 3 {
			parts = append(parts, fmt.Sprintf("%d at %s", s.Copies, s.At))
		}
	}
	what := words.Of(looked, c.Copies, "copy")
	switch len(c.Sites) {
	case 0:
		return nil
	case 1:
		return []finding.Evidence{{Text: fmt.Sprintf("Asked for at %s: Python was executing that line in %s.", c.Sites[0].At, what)}}
	}
	return []finding.Evidence{{Text: fmt.Sprintf("Asked for at several lines: of %s, %s.", what, words.List(parts))}}
}

// Where the copies of a class are asked for, to stand before a repair: at train.py:31 (fit); in the loop over the loader of train.py:9.
func (k *Rank) Where(class Class) string {
	if c := k.Cost(class); c != nil && len(c.Sites) > 0 {
		line, _, _ := strings.Cut(c.Sites[0].At, ", called from ")
		return "at " + line
	}
	return "in the loop over the loader of " + k.Loader.At()
}

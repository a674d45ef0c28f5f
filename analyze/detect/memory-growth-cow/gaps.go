package cow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/evidence/memory"
)

// gaps is what of the rows is missing.
func (c *copies) gaps() string {
	var gaps []string
	for _, l := range c.group.Loaders {
		if gap := c.t.Gap(l, memory.Tables); gap != "" && !slices.Contains(gaps, gap) {
			gaps = append(gaps, gap)
		}
	}
	return strings.Join(gaps, "; ")
}

// blind says why what the workers copied is not known, or not all of it.
func (c *copies) blind() string {
	for _, l := range c.group.Loaders {
		if !c.m.Since(l) {
			return "recorded by a dptrace that did not look at what workers inherit"
		}
	}
	for _, round := range c.group.Rounds {
		for _, crew := range round {
			if crew.Passes[0].Abandoned && len(crew.Passes) == 1 && len(c.group.Rounds) > 1 {
				continue
			}
			if reason := c.blindTo(crew); reason != "" {
				return reason
			}
		}
	}
	return ""
}

func (c *copies) blindTo(crew *memory.WorkerSet) string {
	unseen, open, forked := 0, 0, 0
	var became, charged int64
	for _, s := range crew.Shares {
		switch {
		case s.Tier == memory.Unseen && len(crew.Extents) > 0:
			unseen++
		case s.Open:
			open++
		case s.Forked:
			forked++
		}
		if s.Tier != memory.Kernel {
			became += s.PrivateGrowth
			charged += s.Charged
		}
	}
	all := len(crew.Shares)
	switch other := became - charged; {
	case unseen > 0:
		return fmt.Sprintf("%d of %d workers could not look at their memory", unseen, all)
	case open > 0:
		return fmt.Sprintf("the last counts of %d of %d workers are missing", open, all)
	case forked > 0:
		return fmt.Sprintf("%d of %d workers forked children themselves: what they wrote to after that was copied or only write-protected, which cannot be told apart", forked, all)
	case other > memory.UnnamedLeast*int64(all) && float64(other) > significant*float64(c.limit.Bytes):
		return fmt.Sprintf("%s of what the workers inherited became private by smaps_rollup, and it is not the dataset's objects that dptrace can reach; the kernel tier counts what was copied", words.Bytes(other))
	}
	return ""
}

// clean says how much was looked at.
func (c *copies) clean() string {
	workers := len(c.round.Shares())
	_, outside := c.others()
	switch {
	case c.certainty != 0:
		return "no more than a note on " + memory.Names(c.round[0].Ranked())
	case len(c.round[0].Extents) == 0 && c.round[0].Tier() == memory.Kernel:
		return fmt.Sprintf("the dataset holds no container of 1,000 Python objects or more; %s copied %s of what else they inherited", words.Count(workers, "worker"), words.Bytes(outside))
	case len(c.round[0].Extents) == 0:
		return "the dataset holds no container of 1,000 Python objects or more"
	}
	return fmt.Sprintf("%s copied %s of the dataset's objects", words.Count(workers, "worker"), words.Bytes(c.limit.Load))
}

// others is what the workers copied that is not their dataset's: in all, and of
// that what lies on no known container.
func (c *copies) others() (all, outside int64) {
	for _, s := range c.round.Shares() {
		all += s.Others + s.Outside + s.Rest
		outside += s.Outside + s.Rest
	}
	return
}

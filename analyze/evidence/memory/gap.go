package memory

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// Gap says why what the forked workers of a loader copied is not known, or not
// all of it.
func (m *Memory) Gap(ranks timeline.Ranks) string {
	if ranks == nil || !Inherits(ranks) {
		return ""
	}
	rounds := m.Rounds(ranks)
	for _, l := range ranks {
		if len(rounds) > 0 && !m.limits.Recorded(l.Process.Part) {
			return "recorded by a dptrace that did not look at what workers inherit"
		}
	}
	for _, round := range rounds {
		for _, set := range round {
			if len(rounds) > 1 && set.LeftEarly() {
				continue
			}
			if gap := set.gap(); gap != "" {
				return gap
			}
		}
	}
	return ""
}

// Inherits reports whether a loader has workers that may have been forked.
func Inherits(ranks timeline.Ranks) bool {
	return slices.ContainsFunc(Methods(ranks), func(method string) bool { return method != "spawn" && method != "forkserver" })
}

// LeftEarly reports whether the workers served nothing but a pass that was broken
// off early.
func (s *WorkerSet) LeftEarly() bool { return len(s.Passes) == 1 && s.Passes[0].Abandoned }

func (s *WorkerSet) gap() string {
	unseen, open, forked := 0, 0, 0
	for _, w := range s.Workers {
		switch {
		case w.Tier == Unseen && len(s.Extents) > 0:
			unseen++
		case w.Open:
			open++
		case w.Forked:
			forked++
		}
	}
	switch all := len(s.Workers); {
	case unseen > 0:
		return fmt.Sprintf("%d of %d workers could not look at their memory", unseen, all)
	case open > 0:
		return fmt.Sprintf("the last counts of %d of %d workers are missing", open, all)
	case forked > 0:
		return fmt.Sprintf("%d of %d workers forked children themselves: what they wrote to after that was copied or only write-protected, "+
			"which cannot be told apart", forked, all)
	}
	return ""
}

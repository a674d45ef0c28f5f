package memory

import (
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Group is one loader on all ranks that have it.
type Group struct {
	ID      int
	Loaders timeline.Ranks
	Rounds  []Round
}

// Round is the crews of workers that belong together: the n-th of each rank.
type Round []*WorkerSet

// Groups sorts the loaders of a timeline.
func (m *Memory) Groups(t *timeline.Timeline) []*Group {
	var groups []*Group
	for _, ranks := range t.ByLoader() {
		g := &Group{ID: ranks.ID(), Loaders: ranks}
		for _, l := range ranks {
			for i, crew := range m.Crews(l) {
				if i == len(g.Rounds) {
					g.Rounds = append(g.Rounds, nil)
				}
				g.Rounds[i] = append(g.Rounds[i], crew)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// Best is the round that some number is largest of; nil if there is none.
func (g *Group) Best(number func(*WorkerSet) int64) Round {
	var best Round
	var most int64 = -1
	for _, r := range g.Rounds {
		if n := r.Sum(number); n > most {
			best, most = r, n
		}
	}
	return best
}

// Sum of a number over the ranks.
func (r Round) Sum(number func(*WorkerSet) int64) int64 {
	var n int64
	for _, l := range r {
		n += number(l)
	}
	return n
}

// Shares is all workers of all ranks.
func (r Round) Shares() []*WorkerMemory {
	var all []*WorkerMemory
	for _, l := range r {
		all = append(all, l.Shares...)
	}
	return all
}

// Until is when the round was last seen, of its first rank.
func (r Round) Until() int64 {
	_, to := r[0].span()
	for _, p := range r[0].Passes {
		to = max(to, p.End)
	}
	return to
}

// Tightest limit for a number of the round's crews.
func (m *Memory) TightestOf(r Round, number func(*WorkerSet) int64) (Limit, bool) {
	loads := map[*timeline.Loader]int64{}
	for _, l := range r {
		loads[l.Loader] = number(l)
	}
	return m.Tightest(loads, r.Until())
}

// Ranks whose workers took part; nil if they are not ranks.
func (r Round) Ranks() []int {
	var ranks []int
	for _, l := range r {
		if n := l.Loader.Rank(); n >= 0 {
			ranks = append(ranks, n)
		}
	}
	return ranks
}

// Passes of the loader that delivered anything, of the rank with the most.
func (g *Group) Passes() int {
	most := 0
	for _, l := range g.Loaders {
		n := 0
		for _, p := range l.Passes {
			if p.Delivered > 0 {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// Everywhere reports whether something holds for all objects of the group's
// loaders.
func (g *Group) Everywhere(is func(workers int32, method string) bool) bool {
	for _, l := range g.Loaders {
		for i := range l.Objects {
			if !is(l.Objects[i].NumWorkers, l.Objects[i].StartMethod) {
				return false
			}
		}
	}
	return true
}

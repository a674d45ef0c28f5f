package memory

import "github.com/dptrace/dptrace/analyze/timeline"

// Round is the workers that belong together: those of the n-th start on each
// rank.
type Round []*WorkerSet

// Best is the round that some number is largest of; nil if there is none.
func Best(rounds []Round, number func(*WorkerSet) int64) Round {
	var best Round
	var most int64
	for _, r := range rounds {
		if n := r.Sum(number); best == nil || n > most {
			best, most = r, n
		}
	}
	return best
}

// Sum of a number over the ranks.
func (r Round) Sum(number func(*WorkerSet) int64) int64 {
	var n int64
	for _, set := range r {
		n += number(set)
	}
	return n
}

// Workers of all ranks.
func (r Round) Workers() []*WorkerMemory {
	var all []*WorkerMemory
	for _, set := range r {
		all = append(all, set.Workers...)
	}
	return all
}

// Ranks whose workers took part; nil if they are not ranks.
func (r Round) Ranks() []int {
	var ranks []int
	for _, set := range r {
		if n := set.Loader.Rank(); n >= 0 {
			ranks = append(ranks, n)
		}
	}
	return ranks
}

// Tightest limit for a number of the round's workers; ok is false if none is
// known.
func (r Round) Tightest(limits *Limits, number func(*WorkerSet) int64) (tightest Limit, ok bool) {
	loads := map[*timeline.Loader]int64{}
	for _, set := range r {
		loads[set.Loader] = number(set)
	}
	return limits.Tightest(loads, r.until())
}

// until is when the round was last seen, on its first rank.
func (r Round) until() int64 {
	_, to := r[0].span()
	for _, p := range r[0].Passes {
		to = max(to, p.End)
	}
	return to
}

package timeline

import (
	"cmp"
	"slices"
	"strings"
)

// Together reports whether two processes are ranks of one training: other ranks,
// and alive at the same time (not one the restart of the other), which is known
// only where they share a clock.
func Together(a, b *Process) bool {
	if a.Rank < 0 || b.Rank < 0 || a.Rank == b.Rank || a.WorldSize != b.WorldSize {
		return false
	}
	if a.Part.BootID != b.Part.BootID || a.Part.BootID == "" {
		return true
	}
	return a.Begin < b.End && b.Begin < a.End
}

// number gives the loaders their IDs. Loaders of different ranks get the same
// one if they are made at the same place for the same dataset; those made
// several times at one place are matched in the order in which they were made.
// The length of the dataset counts unless another rank has nothing with it
// (each rank may read its own part of the data).
func (t *Timeline) number() {
	var all []*Loader
	for _, p := range t.Processes {
		all = append(all, p.Loaders...)
	}
	slices.SortStableFunc(all, func(a, b *Loader) int {
		return cmp.Or(cmp.Compare(a.Process.Rank, b.Process.Rank))
	})
	type place struct {
		identity
		nth int
	}
	seen := map[*Process]map[identity]int{}
	nth := func(p *Process, id identity) int {
		if seen[p] == nil {
			seen[p] = map[identity]int{}
		}
		seen[p][id]++
		return seen[p][id]
	}
	byPlace, byLoose := map[place]int{}, map[place]int{}
	next := 1
	used := map[*Process]map[int]bool{}
	for _, l := range all {
		exact := identityOf(l)
		loose := exact
		loose.length, loose.role = -2, ""
		at := place{exact, nth(l.Process, exact)}
		loosely := place{loose, nth(l.Process, loose)}
		if used[l.Process] == nil {
			used[l.Process] = map[int]bool{}
		}
		id := byPlace[at]
		if id == 0 {
			id = byLoose[loosely]
		}
		if id == 0 || used[l.Process][id] {
			id = next
			next++
			byPlace[at] = id
			if byLoose[loosely] == 0 {
				byLoose[loosely] = id
			}
		}
		used[l.Process][id] = true
		l.ID = id
	}
	slices.SortStableFunc(all, func(a, b *Loader) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Process.Rank, b.Process.Rank))
	})
	t.Loaders = all
}

// Ranks is one loader on all ranks that have it, by rank.
type Ranks []*Loader

// ByLoader is the loaders, those that are one together.
func (t *Timeline) ByLoader() (all []Ranks) {
	for _, l := range t.Loaders { // sorted by ID, then rank
		if n := len(all); n > 0 && all[n-1].ID() == l.ID {
			all[n-1] = append(all[n-1], l)
		} else {
			all = append(all, Ranks{l})
		}
	}
	return all
}

// ID is the same on all ranks.
func (r Ranks) ID() int { return r[0].ID }

// Role is train if the loader trains on any rank, else what is known of it.
func (r Ranks) Role() Role {
	role := Unknown
	for _, l := range r {
		if l.Role == Train || role == Unknown {
			role = l.Role
		}
	}
	return role
}

// Distinct joins what is said of the loader on its ranks: each thing once.
func (r Ranks) Distinct(say func(*Loader) string) string {
	var all []string
	for _, l := range r {
		if text := say(l); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

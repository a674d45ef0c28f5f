package timeline_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// TestRelationOfRandomGroups: what follows for two ranks is what it is by the
// definition, read literally.
func TestRelationOfRandomGroups(t *testing.T) {
	seen := map[timeline.Relation]int{}
	for seed := range uint64(250) {
		random := rand.New(rand.NewPCG(seed, 9))
		world, sparse := 2+random.IntN(6), random.IntN(4)
		r := NewRun(t)
		for rank := range world {
			p := r.Process(rank, world)
			for range random.IntN(5) {
				op := []string{"ddp", "fsdp", "reduce", "group", "mesh", "mesh_dim", "group", "exchange", "init"}[random.IntN(9)]
				class := []string{"", "dp", "cp", "dp,cp", "shard"}[random.IntN(5)]
				var ranks []int64 // none: of gradients, everybody
				for _, other := range random.Perm(world + 1) {
					if random.IntN(4) >= sparse && other != rank || other == rank && random.IntN(9) > 0 {
						ranks = append(ranks, int64(other))
					}
				}
				if random.IntN(4) < 1-sparse {
					ranks = nil
				}
				r.Add(p.Proc, dist(op, class, ranks...))
			}
		}
		tl := build(t, r)
		naive := &literal{peers: united(tl)}
		for _, a := range tl.Processes {
			for _, b := range tl.Processes {
				want := naive.relation(a, b)
				seen[want]++
				if got := tl.Relation(a, b); got != want {
					t.Fatalf("seed %d: ranks %d and %d: %v, by definition %v\n%v\n%v", seed, a.Rank, b.Rank, got, want, a.Groups, b.Groups)
				}
			}
		}
	}
	for r := timeline.NoGroups; r <= timeline.Undecided; r++ {
		if seen[r] < 40 {
			t.Errorf("relation %v was tried %d times", r, seen[r])
		}
	}
}

// literal is the definition of Relation: lists, gone through for each pair.
type literal struct{ peers map[*timeline.Process][]int64 }

func (l *literal) relation(a, b *timeline.Process) timeline.Relation {
	of := func(p *timeline.Process) bool {
		return slices.ContainsFunc(p.Groups, func(g traces.Dist) bool { return (ownGroup(g) || g.Op == "exchange") && len(g.Ranks) != 1 })
	}
	switch {
	case len(l.peers[a]) == 0 || len(l.peers[b]) == 0:
		if of(a) || of(b) {
			return timeline.Undecided
		}
		return timeline.NoGroups
	case !slices.Contains(l.peers[a], int64(b.Rank)):
		return timeline.Apart
	case l.joined(a, a, b) || l.joined(b, a, b):
		return timeline.Undecided
	}
	return timeline.DataParallel
}

func (l *literal) joined(p, a, b *timeline.Process) bool {
	dims := slices.ContainsFunc(p.Groups, func(g traces.Dist) bool { return g.Op == "mesh_dim" })
	for _, g := range p.Groups {
		if !ownGroup(g) || !subset([]int64{int64(a.Rank), int64(b.Rank)}, g.Ranks) {
			continue
		}
		if g.Op != "group" && g.Class == "cp" {
			return true
		}
		if g.Op == "mesh" && dims {
			continue
		}
		if g.Op == "mesh" && (g.Class == "" || g.Class == "dp,cp") {
			return true
		}
		equal := func(q traces.Dist) bool {
			return reducing(q) && len(filled(a, q)) == len(g.Ranks) && subset(g.Ranks, filled(a, q))
		}
		if !subset(l.peers[a], g.Ranks) && !slices.ContainsFunc(slices.Concat(a.Groups, b.Groups), equal) {
			return true
		}
	}
	return false
}

// united is the ranks that chains of groups of gradients join with each process.
func united(tl *timeline.Timeline) map[*timeline.Process][]int64 {
	var groups [][]int64
	for _, p := range tl.Processes {
		for _, g := range p.Groups {
			if reducing(g) {
				groups = append(groups, filled(p, g))
			}
		}
	}
	all := map[*timeline.Process][]int64{}
	for _, p := range tl.Processes {
		if !slices.ContainsFunc(p.Groups, reducing) {
			continue
		}
		var set []int64
		from := []int64{int64(p.Rank)}
		for len(from) > 0 {
			r := from[0]
			from = from[1:]
			for _, g := range groups {
				if slices.Contains(g, r) && !subset(g, set) {
					set = append(set, g...)
					from = append(from, g...)
				}
			}
		}
		all[p] = set
	}
	return all
}

func filled(p *timeline.Process, g traces.Dist) []int64 {
	if len(g.Ranks) > 0 {
		return g.Ranks
	}
	var all []int64
	for r := range int64(p.WorldSize) {
		all = append(all, r)
	}
	return all
}

func ownGroup(g traces.Dist) bool { return g.Op == "group" || g.Op == "mesh" || g.Op == "mesh_dim" }

func reducing(g traces.Dist) bool { return g.Op == "ddp" || g.Op == "fsdp" || g.Op == "reduce" }

func subset(some, of []int64) bool {
	return !slices.ContainsFunc(some, func(r int64) bool { return !slices.Contains(of, r) })
}

// TestGroupsOfAnySize: what a trace says of its world is a number, and costs no
// more than one; and a group of all ranks costs each pair of them little.
func TestGroupsOfAnySize(t *testing.T) {
	const ranks = 1024
	var everybody []int64
	for r := range int64(ranks) {
		everybody = append(everybody, ranks-1-r)
	}
	anyNumbers := []int64{math.MaxInt64, math.MinInt64}
	gather := dist("group", "", everybody...)
	for _, c := range []struct {
		name  string
		world int
		rows  []traces.Dist
		want  timeline.Relation
	}{
		{"the largest world", math.MaxInt32, []traces.Dist{dist("ddp", "")}, timeline.DataParallel},
		{"and a group of those that were recorded", math.MaxInt32, []traces.Dist{dist("ddp", ""), gather}, timeline.Undecided},
		{"ranks of any size", ranks, []traces.Dist{dist("ddp", "", append(anyNumbers, everybody...)...)}, timeline.DataParallel},
		{"a world of less than none", -5, []traces.Dist{dist("ddp", "")}, timeline.NoGroups},
		{"everybody, said twice", ranks, []traces.Dist{dist("ddp", ""), gather, dist("fsdp", "", everybody...)}, timeline.DataParallel},
	} {
		r := NewRun(t)
		for rank := range ranks {
			p := r.Process(rank, c.world)
			for _, row := range c.rows {
				r.Add(p.Proc, row)
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tl := build(t, r)
		for _, a := range tl.Processes {
			for _, b := range tl.Processes {
				if got := tl.Relation(a, b); got != c.want && a != b {
					t.Fatalf("%s: %d and %d: %v, want %v", c.name, a.Rank, b.Rank, got, c.want)
				}
			}
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
			t.Errorf("%s: takes %d MB", c.name, took>>20)
		}
	}
}

package timeline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// Relation is what is known about two ranks of one training.
type Relation int

const (
	NoGroups     Relation = iota // no group of gradients was seen for one of them, nor any that the program made itself
	DataParallel                 // their gradients are reduced together, and nothing else joins them: they must see different samples
	Apart                        // both are in groups of gradients, and no chain of those joins them: parts of one replica
	Undecided                    // the program made groups or a mesh of its own, or exchanges something by hand: they may be in one replica, or have trainings of their own
)

// Relation between the processes of two ranks.
//
// That gradients are reduced together does not settle it: context-parallel ranks
// share samples, and their model is wrapped in DDP over data x context. So a
// smaller group that the program made itself, and that has both, leaves it open.
// Each rank records the groups that it is in: both are asked.
func (t *Timeline) Relation(a, b *Process) Relation {
	if len(a.Peers) == 0 || len(b.Peers) == 0 {
		if a.ownGroups() || b.ownGroups() {
			return Undecided
		}
		return NoGroups
	}
	if !t.Reduced(a, b) {
		return Apart
	}
	if t.joined(a, a, b) || t.joined(b, a, b) {
		return Undecided
	}
	return DataParallel
}

// Reduced reports whether the gradients of two ranks are reduced together.
func (t *Timeline) Reduced(a, b *Process) bool {
	return len(a.Peers) > 0 && len(b.Peers) > 0 && slices.Contains(a.Peers[0], int64(b.Rank))
}

// ownGroups reports whether the program joined a rank with others by itself.
func (p *Process) ownGroups() bool {
	return slices.ContainsFunc(p.Groups, func(g traces.Dist) bool { return (own(&g) || g.Op == "exchange") && len(g.Ranks) != 1 })
}

// Initialized reports whether torch's default process group was up: without it
// nothing of torch's reduces gradients.
func (p *Process) Initialized() bool {
	return len(p.Peers) > 0 || slices.ContainsFunc(p.Groups, func(g traces.Dist) bool { return g.Op == "init" })
}

// replica is names of mesh dimensions along which ranks hold parts of one replica:
// tensor, context, sequence, pipeline and expert parallel, as torchtitan,
// accelerate and torch's tutorials call them. Ranks along them may share samples
// although the gradients of all are reduced together.
var replica = regexp.MustCompile(`(?i)^(tp|tensor|cp|context|sp|seq|sequence|ulysses|pp|pipe|pipeline|ep|expert|mp|model)(_?parallel)?$`)

// Joined reports whether a Join context was entered: ranks may run different
// numbers of steps in it.
func (p *Process) Joined() bool {
	return slices.ContainsFunc(p.Groups, func(g traces.Dist) bool { return g.Op == "join" })
}

// joined reports whether a process recorded a group of the program's own that has
// two ranks, and is none of those whose gradients are reduced.
func (t *Timeline) joined(p, a, b *Process) bool {
	dims := slices.ContainsFunc(p.Groups, func(g traces.Dist) bool { return g.Op == "mesh_dim" })
	for i := range p.Groups {
		g := &p.Groups[i]
		switch {
		case !own(g), !has(g.Ranks, a), !has(g.Ranks, b):
		case g.Op != "group" && replica.MatchString(g.Class):
			return true
		case g.Op == "mesh" && dims: // they say it
		case g.Op == "mesh" && (g.Class == "" || strings.Contains(g.Class, ",")): // of how many dimensions, or along which the two lie, is not known
			return true
		case t.reducing(g.Ranks, a, b):
		default:
			return true
		}
	}
	return false
}

// reducing reports whether a group has the ranks of one whose gradients are
// reduced, or more than all of those.
func (t *Timeline) reducing(ranks []int64, a, b *Process) bool {
	if contains(ranks, a.Peers[0]) {
		return true
	}
	for _, p := range []*Process{a, b} {
		for i := range p.Groups {
			if g := &p.Groups[i]; gradients(g.Op) && len(g.Ranks) == len(ranks) && contains(g.Ranks, ranks) {
				return true
			}
		}
	}
	return false
}

// gradients reports whether an operation reduces gradients.
func gradients(op string) bool { return op == "ddp" || op == "fsdp" || op == "reduce" }

func own(g *traces.Dist) bool { return g.Op == "group" || g.Op == "mesh" || g.Op == "mesh_dim" }

func has(ranks []int64, p *Process) bool { return slices.Contains(ranks, int64(p.Rank)) }

// contains reports whether all of some ranks are among others.
func contains(ranks, some []int64) bool {
	return !slices.ContainsFunc(some, func(r int64) bool { return !slices.Contains(ranks, r) })
}

// groupsOf is what a process was seen to do in torch.distributed, and the groups
// whose gradients are reduced together with its own.
func groupsOf(rows []traces.Dist, world int32) (groups []traces.Dist, peers [][]int64) {
	for _, d := range rows {
		if !gradients(d.Op) {
			groups = append(groups, d)
			continue
		}
		d.Ranks = slices.Clone(d.Ranks)
		if len(d.Ranks) == 0 { // the default group: everybody
			for r := range int64(world) {
				d.Ranks = append(d.Ranks, r)
			}
		}
		groups = append(groups, d)
		if len(d.Ranks) > 0 {
			peers = append(peers, d.Ranks)
		}
	}
	return groups, peers
}

// joinPeers unites the groups of all ranks: with a mesh of shards and replicas,
// two ranks may be data-parallel through a third one only.
func (t *Timeline) joinPeers() {
	groups := [][]int64{}
	for _, p := range t.Processes {
		groups = append(groups, p.Peers...)
	}
	root := map[int64]int64{}
	var find func(r int64) int64
	find = func(r int64) int64 {
		up, ok := root[r]
		if !ok {
			root[r] = r
			return r
		}
		if up == r {
			return r
		}
		root[r] = find(up)
		return root[r]
	}
	for _, g := range groups {
		for _, r := range g[1:] {
			root[find(r)] = find(g[0])
		}
		find(g[0])
	}
	sets := map[int64][]int64{}
	for r := range root {
		top := find(r)
		sets[top] = append(sets[top], r)
	}
	for _, set := range sets {
		slices.Sort(set)
	}
	for _, p := range t.Processes {
		if len(p.Peers) > 0 {
			p.Peers = [][]int64{sets[find(int64(p.Rank))]}
		}
	}
}

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
	// Undecided: the program made groups or a mesh of its own, or exchanges
	// something by hand: they may be in one replica, or have trainings of their own.
	Undecided
)

// Relation between the processes of two ranks.
//
// That gradients are reduced together does not settle it: context-parallel ranks
// share samples, and their model is wrapped in DDP over data x context. So a
// smaller group that the program made itself, and that has both, leaves it open.
// Each rank records the groups that it is in: both are asked.
func (t *Timeline) Relation(a, b *Process) Relation {
	if a.Peers == nil || b.Peers == nil {
		if a.ownGroups() || b.ownGroups() {
			return Undecided
		}
		return NoGroups
	}
	if !t.Reduced(a, b) {
		return Apart
	}
	if a.joined(b) || b.joined(a) {
		return Undecided
	}
	return DataParallel
}

// Reduced reports whether the gradients of two ranks are reduced together.
func (t *Timeline) Reduced(a, b *Process) bool {
	return a.Peers != nil && b.Peers != nil && a.Peers.has(int64(b.Rank))
}

// ownGroups reports whether the program joined a rank with others by itself.
func (p *Process) ownGroups() bool {
	return slices.ContainsFunc(p.Groups, func(g traces.Dist) bool { return (own(&g) || g.Op == "exchange") && len(g.Ranks) != 1 })
}

// Initialized reports whether torch's default process group was up: without it
// nothing of torch's reduces gradients.
func (p *Process) Initialized() bool {
	return p.Peers != nil || slices.ContainsFunc(p.Groups, func(g traces.Dist) bool { return g.Op == "init" })
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
// it and another, and is none of those whose gradients are reduced.
func (p *Process) joined(other *Process) bool {
	rank := int64(other.Rank)
	return slices.ContainsFunc(p.apart, func(g *Group) bool { return g.has(rank) }) ||
		slices.ContainsFunc(p.smaller, func(g *Group) bool { return g.has(rank) && !other.reduces[g] })
}

// sortGroups sorts the groups that the program made itself and that a process is
// in, once for all ranks that it is compared with.
func (p *Process) sortGroups(groups groupSet) {
	dims := slices.ContainsFunc(p.Groups, func(g traces.Dist) bool { return g.Op == "mesh_dim" })
	seen := map[*Group]bool{}
	for i := range p.Groups {
		d := &p.Groups[i]
		if !own(d) {
			continue
		}
		g := groups.of(newGroup(d.Ranks, 0))
		switch {
		case !g.has(int64(p.Rank)):
		case d.Op != "group" && replica.MatchString(d.Class):
			p.apart = append(p.apart, g)
		case d.Op == "mesh" && dims: // they say it
		case d.Op == "mesh" && (d.Class == "" || strings.Contains(d.Class, ",")):
			// Of how many dimensions, or along which the two lie, is not known.
			p.apart = append(p.apart, g)
		case g.covers(p.Peers), p.reduces[g], seen[g]:
		default:
			seen[g] = true
			p.smaller = append(p.smaller, g)
		}
	}
}

// gradients reports whether an operation reduces gradients.
func gradients(op string) bool { return op == "ddp" || op == "fsdp" || op == "reduce" }

func own(g *traces.Dist) bool { return g.Op == "group" || g.Op == "mesh" || g.Op == "mesh_dim" }

// joinPeers unites the groups of all ranks: with a mesh of shards and replicas,
// two ranks may be data-parallel through a third one only.
func (t *Timeline) joinPeers() {
	groups := groupSet{}
	var all []*Group
	for _, p := range t.Processes {
		p.reduces = map[*Group]bool{}
		for i := range p.Groups {
			if d := &p.Groups[i]; gradients(d.Op) && (len(d.Ranks) > 0 || p.WorldSize > 0) {
				p.reduces[groups.reduced(d, p.WorldSize)] = true
			}
		}
	}
	for _, g := range groups {
		all = append(all, g)
	}
	peers := unite(all)
	for _, p := range t.Processes {
		if len(p.reduces) == 0 {
			continue
		}
		p.Peers = peers(int64(p.Rank)) // nil: it may have recorded groups that it is not in itself
		if p.Peers != nil {
			p.sortGroups(groups)
		}
	}
}

package timeline_test

import (
	"testing"

	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// dist is a row of one rank.
func dist(op, class string, ranks ...int64) traces.Dist {
	return traces.Dist{Op: op, Class: class, Ranks: ranks}
}

// TestRelation: what each rank recorded, and what follows for two of them.
func TestRelation(t *testing.T) {
	rows := func(all ...traces.Dist) []traces.Dist { return all }
	ddp, both := dist("ddp", ""), dist("group", "", 0, 1)
	four := func(of func(rank int64) []traces.Dist) (all [][]traces.Dist) {
		for rank := range int64(4) {
			all = append(all, of(rank))
		}
		return all
	}
	// data x context of two each: 0 1 / 2 3
	mesh := func(rank int64) []traces.Dist {
		return rows(ddp, dist("mesh", "dp,cp", 0, 1, 2, 3), dist("mesh_dim", "cp", rank/2*2, rank/2*2+1), dist("mesh_dim", "dp", rank%2, rank%2+2))
	}
	for _, c := range []struct {
		name  string
		ranks [][]traces.Dist
		a, b  int
		want  timeline.Relation
	}{
		{"ddp over all", [][]traces.Dist{rows(ddp), rows(ddp)}, 0, 1, timeline.DataParallel},
		{"and a group of the same ranks, to gather objects", [][]traces.Dist{rows(ddp, both), rows(ddp, both)}, 0, 1, timeline.DataParallel},
		{"and a mesh of one dimension", [][]traces.Dist{rows(ddp, dist("mesh", "dp", 0, 1), dist("mesh_dim", "dp", 0, 1)), rows(ddp)}, 0, 1, timeline.DataParallel},
		{"and one for context", [][]traces.Dist{rows(ddp, dist("mesh", "cp", 0, 1), dist("mesh_dim", "cp", 0, 1)), rows(ddp)}, 0, 1, timeline.Undecided},
		{"nothing", [][]traces.Dist{nil, nil}, 0, 1, timeline.NoGroups},
		{"a process group alone", [][]traces.Dist{rows(dist("init", "", 0, 1)), rows(dist("init", "", 0, 1))}, 0, 1, timeline.NoGroups},
		{"gradients reduced by hand", [][]traces.Dist{rows(dist("init", "", 0, 1), dist("reduce", "", 0, 1)), rows(dist("init", "", 0, 1), dist("reduce", "", 0, 1))}, 0, 1, timeline.DataParallel},
		{"and losses", [][]traces.Dist{rows(dist("reduce", "", 0, 1), dist("exchange", "all_reduce", 0, 1)), rows(dist("reduce", "", 0, 1))}, 0, 1, timeline.DataParallel},
		{"activations sent", [][]traces.Dist{rows(dist("exchange", "send", 0, 1)), rows(dist("exchange", "recv", 0, 1))}, 0, 1, timeline.Undecided},
		{"a join context", [][]traces.Dist{rows(dist("join", "")), nil}, 0, 1, timeline.NoGroups},
		{"one rank without a group", [][]traces.Dist{rows(dist("fsdp", "", 0, 1)), nil}, 0, 1, timeline.NoGroups},
		{"a group of its own alone", [][]traces.Dist{nil, rows(both)}, 0, 1, timeline.Undecided},
		{"groups of one rank each", [][]traces.Dist{rows(dist("group", "", 0)), rows(dist("group", "", 1))}, 0, 1, timeline.NoGroups},
		{"tensor parallel by two", four(func(r int64) []traces.Dist { return rows(dist("ddp", "", r%2, r%2+2)) }), 0, 1, timeline.Apart},
		{"and its peers", four(func(r int64) []traces.Dist { return rows(dist("ddp", "", r%2, r%2+2)) }), 1, 3, timeline.DataParallel},
		{"tensor parallel, its groups too", four(func(r int64) []traces.Dist {
			return rows(dist("ddp", "", r%2, r%2+2), dist("group", "", r%2, r%2+2), dist("group", "", r/2*2, r/2*2+1))
		}), 1, 3, timeline.DataParallel},
		{"context parallel: ddp over data x context", four(mesh), 0, 1, timeline.Undecided},
		{"and across", four(mesh), 0, 3, timeline.DataParallel},
		{"context groups, one rank's rows are all there is", [][]traces.Dist{rows(ddp), rows(ddp, both), rows(ddp), rows(ddp)}, 0, 1, timeline.Undecided},
		{"a mesh whose dimensions are not told", four(func(int64) []traces.Dist { return rows(ddp, dist("mesh", "dp,cp", 0, 1, 2, 3)) }), 0, 3, timeline.Undecided},
		{"a mesh of one dimension that is smaller", four(func(int64) []traces.Dist { return rows(ddp, dist("mesh", "cp", 0, 1)) }), 0, 1, timeline.Undecided},
		// Shards of two and replicas of two: 0 and 3 meet through a third rank only.
		{"shards and replicas", four(func(r int64) []traces.Dist {
			return rows(dist("fsdp", "", r/2*2, r/2*2+1), dist("fsdp", "", r%2, r%2+2))
		}), 0, 3, timeline.DataParallel},
		{"shards and replicas, on a mesh", four(func(r int64) []traces.Dist {
			return rows(dist("fsdp", "", r/2*2, r/2*2+1), dist("fsdp", "", r%2, r%2+2), dist("mesh_dim", "shard", r/2*2, r/2*2+1))
		}), 0, 1, timeline.DataParallel},
	} {
		r := NewRun(t)
		for rank, rows := range c.ranks {
			p := r.Process(rank, len(c.ranks))
			for _, row := range rows {
				r.Add(p.Proc, row)
			}
		}
		tl := build(t, r)
		for _, pair := range [][2]int{{c.a, c.b}, {c.b, c.a}} {
			if got := tl.Relation(tl.Processes[pair[0]], tl.Processes[pair[1]]); got != c.want {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	}
}

package pprof

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// lines are what Python was executing, by traces.CallSite.Site.
type lines map[*traces.Part]map[uint32][]timeline.Frame

func linesOf(run *traces.Run) lines {
	all := lines{}
	for part, r := range traces.Rows[traces.CallSite](run) {
		if all[part] == nil {
			all[part] = map[uint32][]timeline.Frame{}
		}
		all[part][r.Site] = timeline.Frames(r.Frames)
	}
	return all
}

// byProcess finds places by the numbers of their processes.
func byProcess(all []*place) map[*traces.Part]map[uint32]*place {
	places := map[*traces.Part]map[uint32]*place{}
	for _, p := range all {
		if places[p.process.Part] == nil {
			places[p.process.Part] = map[uint32]*place{}
		}
		places[p.process.Part][p.process.Proc] = p
	}
	return places
}

// below is the place with the functions of Python that were executing there, the innermost first.
func (p *place) below(frames []timeline.Frame) *place {
	under := *p
	under.stack = nil
	for _, f := range frames {
		under.stack = append(under.stack, frame{name: f.Function, file: f.File, line: int64(f.Line)})
	}
	under.stack = append(under.stack, p.stack...)
	return &under
}

// lookedAt is that one of so many faults was looked at: LOOKED_AT of bpf/cow.bpf.c.
const lookedAt = 64

// written adds the faults on inherited memory, by line.
func (b *builder) written(run *traces.Run, all []*place, sites lines) {
	type where struct {
		process *place
		site    uint32
	}
	places := byProcess(all)
	seen := map[where]uint64{}
	for part, r := range traces.Rows[traces.Touch](run) {
		if p := places[part][r.Proc]; p != nil {
			seen[where{p, r.Site}] = max(seen[where{p, r.Site}], r.Seen)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(seen), func(a, b where) int {
		return cmp.Or(cmp.Compare(a.process.process.Part.Name, b.process.process.Part.Name),
			cmp.Compare(a.process.process.Proc, b.process.process.Proc), cmp.Compare(a.site, b.site))
	}) {
		frames := sites[k.process.process.Part][k.site]
		leaf := frame{}
		if len(frames) == 0 {
			leaf.name = "not known"
		}
		b.sample(k.process.below(frames), leaf, "written", "kernel", [values]int64{writtenFaults: int64(min(seen[k], 1<<50)) * lookedAt})
	}
}

package pprof

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/traces"
)

// kernel adds the faults of a process on memory that it had inherited.
func (b *builder) kernel(p *place, m *memory.Memory) {
	var owners []owner
	if w, ok := m.Worker(p.process); ok {
		for _, e := range w.Set.Extents {
			owners = append(owners, owner{e.Path, memory.BlocksOf(e)})
		}
	}
	for _, mapping := range m.Mappings(p.process) {
		if mapping.Kind == "parent" {
			leaf := frame{name: "inherited and write-protected, by its own forks too"}
			b.sample(p, leaf, mapping.Kind, "kernel", [values]int64{cowFaults: mapping.Pages})
			continue
		}
		b.mapping(p, mapping, owners, m.PageSize(p.process.Part))
	}
}

// owner is a container, and the blocks that its objects lie on.
type owner struct {
	path   string
	blocks memory.Blocks
}

// mapping adds the faults on one kind of mapping: those on the objects of a
// container of the dataset, and the others. A block that holds objects of several
// containers counts for all of them together, once.
func (b *builder) mapping(p *place, mapping memory.Mapping, owners []owner, page int64) {
	rest := mapping.Pages
	pages := map[string]int64{}
	for _, block := range slices.Sorted(maps.Keys(mapping.Blocks)) {
		var names []string
		for _, o := range owners {
			if o.blocks.Has(block) {
				names = append(names, o.path)
			}
		}
		if n := min(mapping.Blocks[block], rest); n > 0 && len(names) > 0 {
			pages[joined(names)] += n
			rest -= n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		b.sample(p, frame{name: name}, mapping.Kind, "kernel", [values]int64{cow: pages[name] * page, cowFaults: pages[name]})
	}
	b.sample(p, frame{name: "other inherited memory: " + mapping.Kind}, mapping.Kind, "kernel",
		[values]int64{cow: rest * page, cowFaults: rest})
}

// hook adds what a worker has seen in its page map. If its containers share
// blocks, their sum is more than what it has of all of them.
func (b *builder) hook(p *place, m *memory.Memory) {
	w, ok := m.Worker(p.process)
	if !ok {
		return
	}
	var sum int64
	var names []string
	for _, number := range slices.Sorted(maps.Keys(w.ByExtent)) {
		if n := w.ByExtent[number]; n > 0 {
			sum += n
			names = append(names, pathOf(w.Set.Extents, number))
		}
	}
	if w.Tier == memory.Hook && (sum > w.Copied || len(w.ByExtent) == 0) {
		b.sample(p, frame{name: joined(names)}, "inherited", "hook", [values]int64{cow: w.Copied})
		return
	}
	for _, number := range slices.Sorted(maps.Keys(w.ByExtent)) {
		b.sample(p, frame{name: pathOf(w.Set.Extents, number)}, "inherited", "hook", [values]int64{cow: w.ByExtent[number]})
	}
}

func pathOf(extents []traces.Extent, number uint32) string {
	if i := slices.IndexFunc(extents, func(e traces.Extent) bool { return e.Extent == number }); i >= 0 {
		return extents[i].Path
	}
	return fmt.Sprintf("container %d", number) // its row is lost
}

func joined(names []string) string {
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return "containers of the dataset"
	}
	return strings.Join(names, " + ")
}

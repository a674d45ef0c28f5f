package cow

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/probes/procfs"
)

// region is addresses that are mapped for one thing.
type region struct {
	start, end uint64
	kind       string // of traces.Cow.Mapping
}

// regions are the mappings of a process by what they are for: those side by side
// that are for the same are one. A process of torch has thousands, of which its
// children keep a copy here.
func regions(mapped []procfs.Mapping) []region {
	var all []region
	for _, m := range mapped {
		r := region{m.Start, m.End, kind(m)}
		if n := len(all); n > 0 && all[n-1].end == r.start && all[n-1].kind == r.kind {
			all[n-1].end = r.end
			continue
		}
		all = append(all, r)
	}
	return slices.Clip(all)
}

// kind is what a mapping is for, in the words of traces.Cow.Mapping.
func kind(m procfs.Mapping) string {
	switch {
	case m.Shared:
		return "shm"
	case m.Name == "[heap]":
		return "heap"
	case strings.HasPrefix(m.Name, "[stack"):
		return "stack"
	case m.File:
		return "file"
	}
	return "anon"
}

// dominant finds what most of a block is mapped for. Several kinds in one block
// are rare: the heap and the anonymous regions of an allocator are far larger.
// Shared memory, which is never copied, is named only where there is nothing
// else.
func dominant(mapped []region, start, end uint64) string {
	size := map[string]uint64{}
	i, _ := slices.BinarySearchFunc(mapped, start, func(m region, a uint64) int {
		if m.end <= a {
			return -1
		}
		return 1
	})
	for ; i < len(mapped) && mapped[i].start < end; i++ {
		m := mapped[i]
		size[m.kind] += min(m.end, end) - max(m.start, start)
	}
	best := ""
	for _, k := range []string{"heap", "anon", "stack", "file"} { // among equals the likeliest to be copied
		if size[k] > size[best] {
			best = k
		}
	}
	if best == "" && size["shm"] > 0 {
		return "shm"
	}
	return best
}

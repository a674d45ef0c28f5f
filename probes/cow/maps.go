package cow

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/probes/procfs"
)

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
func dominant(mapped []procfs.Mapping, start, end uint64) string {
	size := map[string]uint64{}
	i, _ := slices.BinarySearchFunc(mapped, start, func(m procfs.Mapping, a uint64) int {
		if m.End <= a {
			return -1
		}
		return 1
	})
	for ; i < len(mapped) && mapped[i].Start < end; i++ {
		m := mapped[i]
		size[kind(m)] += min(m.End, end) - max(m.Start, start)
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

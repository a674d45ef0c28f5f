package cow

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/probes/probe"
)

// region is one line of /proc/PID/maps.
type region struct {
	start, end uint64
	kind       string // as traces.Cow.Mapping: heap, anon, stack, file, shm
}

// readMaps reads the mappings of a process, by address.
func readMaps(pid int32) ([]region, error) {
	b, err := probe.ReadProc(pid, "maps")
	if err != nil {
		return nil, err
	}
	return parseMaps(b), nil
}

// parseMaps leaves out lines that are not as proc(5) says.
func parseMaps(text []byte) []region {
	var all []region
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 5 {
			continue
		}
		from, to, ok := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if !ok || err1 != nil || err2 != nil || len(fields[1]) != 4 {
			continue
		}
		name := strings.Join(fields[5:], " ")
		all = append(all, region{start, end, kind(name, fields[4], fields[1][3] == 's')})
	}
	return all
}

func kind(name, inode string, shared bool) string {
	switch {
	case shared:
		return "shm"
	case name == "[heap]":
		return "heap"
	case strings.HasPrefix(name, "[stack"):
		return "stack"
	case inode != "0":
		return "file"
	}
	return "anon"
}

// dominant finds what most of a block is mapped for. Several kinds in one block
// are rare: the heap and the anonymous regions of an allocator are far larger.
// Shared memory, which is never copied, is named only where there is nothing
// else.
func dominant(regions []region, start, end uint64) string {
	size := map[string]uint64{}
	i, _ := slices.BinarySearchFunc(regions, start, func(r region, a uint64) int {
		if r.end <= a {
			return -1
		}
		return 1
	})
	for ; i < len(regions) && regions[i].start < end; i++ {
		r := regions[i]
		size[r.kind] += min(r.end, end) - max(r.start, start)
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

package procfs

import (
	"bytes"
	"strconv"
	"strings"
)

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End uint64
	Name       string // of its file, or [heap], [stack], …; "" it has none
	File       bool   // it has an inode
	Inode      uint64 // its number; 0 it has none
	Shared     bool   // what is written to it, others see
}

// Maps reads the mappings of a process, by address.
func Maps(pid int32) ([]Mapping, error) {
	b, err := Read(pid, "maps")
	if err != nil {
		return nil, err
	}
	return parseMaps(b), nil
}

// parseMaps leaves out lines that are not as proc(5) says.
func parseMaps(text []byte) []Mapping {
	var all []Mapping
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
		inode, _ := strconv.ParseUint(fields[4], 10, 64)
		all = append(all, Mapping{start, end, strings.Join(fields[5:], " "), fields[4] != "0", inode, fields[1][3] == 's'})
	}
	return all
}

package procfs

import (
	"bytes"
	"strconv"
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
func Maps(pid int32) ([]Mapping, error) { return MapsNamed(pid, "") }

// MapsNamed reads those that have this in their name; "" is in all.
func MapsNamed(pid int32, part string) ([]Mapping, error) {
	b, err := Read(pid, "maps")
	if err != nil {
		return nil, err
	}
	return parseMaps(b, part), nil
}

// parseMaps leaves out lines that are not as proc(5) says. A process of torch has
// two thousand: neighbours share a name, and nothing else is allocated for a line.
func parseMaps(text []byte, part string) []Mapping {
	var all []Mapping
	if part == "" {
		all = make([]Mapping, 0, bytes.Count(text, []byte("\n")))
	}
	name := ""
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(part)) {
			continue
		}
		m, rest, ok := parseMapping(bytes.TrimSuffix(line, []byte("\n")))
		if !ok {
			continue
		}
		if string(rest) != name {
			name = string(rest)
		}
		m.Name = name
		all = append(all, m)
	}
	return all
}

// parseMapping gives one without its name, and the name.
func parseMapping(line []byte) (m Mapping, name []byte, ok bool) {
	var fields [5][]byte // addresses, permissions, offset, device, inode
	for i := range fields {
		fields[i], line, ok = bytes.Cut(line, []byte(" "))
		if !ok && i < 4 || len(fields[i]) == 0 {
			return m, nil, false
		}
	}
	from, to, ok := bytes.Cut(fields[0], []byte("-"))
	start, err1 := strconv.ParseUint(string(from), 16, 64)
	end, err2 := strconv.ParseUint(string(to), 16, 64)
	if !ok || err1 != nil || err2 != nil || len(fields[1]) != 4 {
		return m, nil, false
	}
	inode, _ := strconv.ParseUint(string(fields[4]), 10, 64)
	return Mapping{Start: start, End: end, File: inode != 0, Inode: inode, Shared: fields[1][3] == 's'}, bytes.TrimLeft(line, " "), true
}

package procfs

import "bytes"

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End uint64
	Name       string // of its file, or [heap], [stack], …; "" it has none
	File       bool   // it has an inode
	Inode      uint64 // its number; 0 it has none
	Shared     bool   // what is written to it, others see
}

// Maps reads the mappings of a process, by address: those in whose line of
// /proc/PID/maps this is, as a part of their name; "" is in all.
func Maps(pid int32, with string) ([]Mapping, error) {
	b, err := Read(pid, "maps")
	if err != nil {
		return nil, err
	}
	return parseMaps(b, with), nil
}

// parseMaps leaves out lines that are not as proc(5) says. A process of torch has
// two thousand: neighbours share a name, and nothing else is allocated for a line.
func parseMaps(text []byte, with string) []Mapping {
	var all []Mapping
	if with == "" {
		all = make([]Mapping, 0, bytes.Count(text, []byte("\n")))
	}
	name := ""
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(with)) {
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
	start, ok1 := number(from, 16)
	end, ok2 := number(to, 16)
	if !ok || !ok1 || !ok2 || len(fields[1]) != 4 {
		return m, nil, false
	}
	inode, _ := number(fields[4], 10)
	return Mapping{Start: start, End: end, File: inode != 0, Inode: inode, Shared: fields[1][3] == 's'}, bytes.TrimLeft(line, " "), true
}

// number is strconv.ParseUint of bytes, in lower case.
func number(digits []byte, base uint64) (n uint64, ok bool) {
	for _, c := range digits {
		d := uint64(c - '0')
		if c >= 'a' {
			d = uint64(c-'a') + 10
		}
		if d >= base {
			return 0, false
		}
		n = n*base + d
	}
	return n, len(digits) > 0
}

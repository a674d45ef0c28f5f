package frames

// lnotab is the line of the instruction at a byte, of Python 3.6 to 3.9: pairs of how many
// bytes and how many lines later it goes on (Objects/lnotab_notes.txt).
func lnotab(table []byte, first, at int) (line int) {
	line = first
	for i, address := 0, 0; i+1 < len(table); i += 2 {
		if address += int(table[i]); address > at {
			break
		}
		line += int(int8(table[i+1]))
	}
	return line
}

// lineTable is the same of Python 3.10 (PEP 626): pairs of how many bytes a range has, and how
// many lines later than the one before it is.
func lineTable(table []byte, first, at int) (line int) {
	const none = -128
	computed, end := first, 0
	for i := 0; i+1 < len(table); i += 2 {
		begin := end
		end += int(table[i])
		delta := int(int8(table[i+1]))
		if line = 0; delta != none {
			computed += delta
			line = computed
		}
		if begin <= at && at < end {
			return line
		}
	}
	return 0
}

// locations is the same since Python 3.11 (Objects/locations.md): an entry for each range, of code
// units of two bytes.
func locations(table []byte, first, at int) (line int) {
	const unit = 2
	const short, oneLine, noColumns, long, none = 0, 10, 13, 14, 15
	computed, end := first, 0
	for len(table) > 0 {
		head := table[0]
		table = table[1:]
		begin := end
		end += (int(head&7) + 1) * unit
		line = 0
		switch kind := int(head >> 3 & 15); {
		case kind == none:
		case kind == long, kind == noColumns:
			var delta int
			delta, table = signed(table)
			computed += delta
			line = computed
			if kind == long {
				for range 3 { // the last line, and two columns
					_, table = varint(table)
				}
			}
		case kind >= oneLine:
			computed += kind - oneLine
			line, table = computed, table[min(2, len(table)):]
		default: // short
			line, table = computed, table[min(1, len(table)):]
		}
		if begin <= at && at < end {
			return line
		}
	}
	return 0
}

// varint is six bits in each byte, the lowest first.
func varint(table []byte) (n int, rest []byte) {
	const more, most = 0x40, 5
	for i := range min(len(table), most) {
		n |= int(table[i]&0x3f) << (6 * i)
		if table[i]&more == 0 {
			return n, table[i+1:]
		}
	}
	return 0, nil
}

func signed(table []byte) (n int, rest []byte) {
	n, rest = varint(table)
	if n&1 != 0 {
		return -(n >> 1), rest
	}
	return n >> 1, rest
}

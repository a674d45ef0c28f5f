package timeline

import "math/bits"

// bitset is a set of the deliveries of a pass, by their number from 0.
type bitset []uint64

func (b *bitset) add(i int) {
	for len(*b) <= i/64 {
		*b = append(*b, 0)
	}
	(*b)[i/64] |= 1 << (i % 64)
}

func (b bitset) has(i int) bool { return i >= 0 && i/64 < len(b) && b[i/64]&(1<<(i%64)) != 0 }

func (b bitset) count() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// or is what is in any of them.
func (b bitset) or(o bitset) bitset {
	if len(b) < len(o) {
		b, o = o, b
	}
	all := make(bitset, len(b))
	copy(all, b)
	for i, word := range o {
		all[i] |= word
	}
	return all
}

// andNot is what is in b alone.
func (b bitset) andNot(o bitset) bitset {
	all := make(bitset, len(b))
	for i, word := range b {
		all[i] = word
		if i < len(o) {
			all[i] &^= o[i]
		}
	}
	return all
}

// and is what is in both.
func (b bitset) and(o bitset) bitset { return b.andNot(b.andNot(o)) }

// earlier is the set with all of it one delivery before; last says whether the
// last of n is in it.
func (b bitset) earlier(n int, last bool) bitset {
	all := make(bitset, len(b))
	for i := range b {
		all[i] = b[i] >> 1
		if i+1 < len(b) {
			all[i] |= b[i+1] << 63
		}
	}
	if last {
		all.add(n - 1)
	}
	return all
}

// moments of the deliveries of a pass, 4 bytes each: counted from its begin, in
// units that grow with its length, rounded down.
type moments struct {
	begin int64
	shift uint8 // of nanoseconds
	at    []uint32
}

func (m *moments) set(i int, ns int64) {
	if m.begin == 0 {
		m.begin, m.shift = ns-1, 10
	}
	for len(m.at) <= i {
		m.at = append(m.at, 0)
	}
	if m.at[i] != 0 {
		return
	}
	after := uint64(max(ns-m.begin, 0))
	for after>>m.shift >= 1<<32-2 {
		m.shift++
		for k, v := range m.at {
			if v > 0 {
				m.at[k] = (v-1)>>1 + 1
			}
		}
	}
	m.at[i] = uint32(after>>m.shift) + 1
}

// get is 0 where none was set.
func (m *moments) get(i int) int64 {
	if i < 0 || i >= len(m.at) || m.at[i] == 0 {
		return 0
	}
	return m.begin + int64(uint64(m.at[i]-1)<<m.shift)
}

// counts of the deliveries of a pass, most of which are equal.
type counts struct {
	runs []run
	n    int
}

type run struct {
	from  int
	value int32
}

// mostRuns are kept of a pass: of what follows nothing is known.
const mostRuns = 1 << 16

func (c *counts) add(value int32) {
	if last := len(c.runs) - 1; last < 0 || c.runs[last].value != value {
		switch {
		case len(c.runs) < mostRuns:
			c.runs = append(c.runs, run{c.n, value})
		case c.runs[last].value != -1:
			c.runs = append(c.runs, run{c.n, -1})
		}
	}
	c.n++
}

// get is -1 where it is not known.
func (c *counts) get(i int) int {
	if i < 0 || i >= c.n {
		return -1
	}
	low, high := 0, len(c.runs)
	for low+1 < high {
		if mid := (low + high) / 2; c.runs[mid].from <= i {
			low = mid
		} else {
			high = mid
		}
	}
	return int(c.runs[low].value)
}

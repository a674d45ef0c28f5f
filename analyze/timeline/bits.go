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

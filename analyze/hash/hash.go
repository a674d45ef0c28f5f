// Package hash is the one hash by which the analysis takes a part of what it
// cannot keep as a whole, and says that two lists are one.
package hash

// Mix is the finalizer of splitmix64: it spreads a number over all 64 bits.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Low reports whether the hash of a number begins with so many zeros: one of 2^zeros
// does, the same ones on all ranks and in all passes. With 64 one number is left,
// with more none.
func Low(x uint64, zeros uint) bool { return zeros <= 64 && Mix(x)>>(64-zeros) == 0 }

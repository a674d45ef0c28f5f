package rng

import (
	"encoding/binary"
	"math/big"
	"math/bits"
)

// U128 is an unsigned integer of 128 bits; arithmetic wraps around.
type U128 struct{ Hi, Lo uint64 }

func decodeU128(b []byte) U128 {
	return U128{binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b)}
}

func (a U128) put(b []byte) {
	binary.LittleEndian.PutUint64(b, a.Lo)
	binary.LittleEndian.PutUint64(b[8:], a.Hi)
}

func (a U128) add(b U128) U128 {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	hi, _ := bits.Add64(a.Hi, b.Hi, carry)
	return U128{hi, lo}
}

func (a U128) mul(b U128) U128 {
	hi, lo := bits.Mul64(a.Lo, b.Lo)
	return U128{hi + a.Hi*b.Lo + a.Lo*b.Hi, lo}
}

func (a U128) and(b U128) U128 { return U128{a.Hi & b.Hi, a.Lo & b.Lo} }
func (a U128) or(b U128) U128  { return U128{a.Hi | b.Hi, a.Lo | b.Lo} }
func (a U128) zero() bool      { return a.Hi|a.Lo == 0 }

func (a U128) shr1() U128 { return U128{a.Hi >> 1, a.Lo>>1 | a.Hi<<63} }
func (a U128) shl1() U128 { return U128{a.Hi<<1 | a.Lo>>63, a.Lo << 1} }

// String is decimal, as Python prints it.
func (a U128) String() string {
	b := new(big.Int).SetUint64(a.Hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(a.Lo)).String()
}

// far is the distance from which on two states of one orbit count as different
// streams: nobody draws that much, but jumped() streams lie that far apart.
const far = 1 << 48

// signed gives a difference modulo 2^128 as a number, if it is less than far.
func (a U128) signed() (int64, bool) {
	switch {
	case a.Hi == 0 && a.Lo < far:
		return int64(a.Lo), true
	case a.Hi == ^uint64(0) && -a.Lo < far:
		return -int64(-a.Lo), true
	}
	return 0, false
}

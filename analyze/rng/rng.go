// Package rng is the arithmetic of the generators that dptrace reads: it
// decodes their states as PROTOCOL.md ("Generator states") writes them, steps
// them, and tells how far apart two states of one stream are.
//
// Distances and positions count 32-bit words for every generator: the 64-bit
// ones keep half a word back after a 32-bit draw (has_uint32), so a state may
// lie between two of their words. The outputs are raw ones, before anything
// turns them into floats or bounded integers.
package rng

import (
	"encoding/binary"
	"fmt"
)

// The kinds of rng_slot.kind.
const (
	KindMT19937   = "mt19937"
	KindPCG64     = "pcg64"
	KindPCG64DXSM = "pcg64dxsm"
	KindPhilox    = "philox"
	KindSFC64     = "sfc64"
	KindCV2       = "cv2"
	KindSobol     = "sobol"
)

// Width is the size of the raw outputs of a kind in 32-bit words: 1 or 2.
func Width(kind string) int64 {
	switch kind {
	case KindPCG64, KindPCG64DXSM, KindPhilox, KindSFC64:
		return 2
	}
	return 1
}

// half is what NumPy's 64-bit generators remember between two 32-bit draws.
type half struct {
	has   bool
	upper uint32
}

func (h half) words() int64 {
	if h.has {
		return 1
	}
	return 0
}

func decodeHalf(b []byte) half {
	return half{binary.LittleEndian.Uint32(b) != 0, binary.LittleEndian.Uint32(b[4:])}
}

func checkSize(kind string, raw []byte, want int) error {
	if len(raw) != want {
		return fmt.Errorf("decode %s state: %d bytes, want %d", kind, len(raw), want)
	}
	return nil
}

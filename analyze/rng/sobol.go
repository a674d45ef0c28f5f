package rng

import "encoding/binary"

// Sobol is a quasi-random engine: a low-discrepancy sequence of points (Sobol's
// or Halton's), and how far it was drawn. The points are a function of the
// sequence and the place alone.
type Sobol struct {
	Sequence [16]byte // tells sequences apart: dimension and scrambling
	Jumps    uint64   // calls of fast_forward and reset in its process: a place may change without a draw
	Drawn    uint64   // coordinates, from the begin of the sequence
}

// DecodeSobol reads the column rng_state.raw.
func DecodeSobol(raw []byte) (Sobol, error) {
	var s Sobol
	if err := checkSize(KindSobol, raw, 32); err != nil {
		return s, err
	}
	copy(s.Sequence[:], raw)
	s.Jumps, s.Drawn = binary.LittleEndian.Uint64(raw[16:]), binary.LittleEndian.Uint64(raw[24:])
	return s, nil
}

// Encode is the opposite of DecodeSobol.
func (s *Sobol) Encode() []byte {
	b := append([]byte(nil), s.Sequence[:]...)
	b = binary.LittleEndian.AppendUint64(b, s.Jumps)
	return binary.LittleEndian.AppendUint64(b, s.Drawn)
}

// Words is the position: a coordinate counts as a word of 32 bits.
func (s *Sobol) Words() int64 { return int64(s.Drawn) }

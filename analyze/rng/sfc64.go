package rng

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// SFC64 is NumPy's SFC64 (Doty-Humphrey's small fast chaotic generator): three
// words that are mixed, and one that counts the outputs.
type SFC64 struct {
	State [4]uint64
	half
}

// DecodeSFC64 reads the column rng_state.raw.
func DecodeSFC64(raw []byte) (SFC64, error) {
	var s SFC64
	if err := checkSize(KindSFC64, raw, 40); err != nil {
		return s, err
	}
	for i := range s.State {
		s.State[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	s.half = decodeHalf(raw[32:])
	return s, nil
}

// Encode is the opposite of DecodeSFC64.
func (s *SFC64) Encode() []byte {
	b := make([]byte, 40)
	for i, w := range s.State {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	s.half.put(b[32:])
	return b
}

// Uint64 draws the next output.
func (s *SFC64) Uint64() uint64 {
	t := &s.State
	out := t[0] + t[1] + t[3]
	t[3]++
	t[0] = t[1] ^ t[1]>>11
	t[1] = t[2] + t[2]<<3
	t[2] = bits.RotateLeft64(t[2], 24) + out
	return out
}

// Uint32 draws half an output, as NumPy does for 32-bit integers.
func (s *SFC64) Uint32() uint32 { return s.half.draw(s.Uint64) }

// Counter is the word that counts the outputs: two states of one stream are
// exactly as far apart as their counters.
func (s *SFC64) Counter() uint64 { return s.State[3] }

// Position is the state's place on its stream in 32-bit words, counted from
// where the counter was 0.
func (s *SFC64) Position() int64 { return 2*int64(s.Counter()) - s.words() }

// Distance is the number of 32-bit words from s to o, found by drawing at most
// limit outputs. It is false if o does not come after s, within limit outputs,
// on the same stream. steps is how many outputs were drawn to find out.
func (s *SFC64) Distance(o *SFC64, limit int64) (words, steps int64, ok bool) {
	n := o.Counter() - s.Counter()
	if n > uint64(max(limit, 0)) {
		return 0, 0, false
	}
	t := *s
	for range n {
		t.Uint64()
	}
	return 2*int64(n) - o.words() + s.words(), int64(n), t.State == o.State
}

// Python is an expression that makes the same generator in NumPy.
func (s *SFC64) Python() string {
	return fmt.Sprintf("g = np.random.SFC64(); g.state = {'bit_generator': 'SFC64', "+
		"'state': {'state': np.array([%d, %d, %d, %d], np.uint64)}, 'has_uint32': %d, 'uinteger': %d}",
		s.State[0], s.State[1], s.State[2], s.State[3], s.words(), s.upper)
}

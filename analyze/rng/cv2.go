package rng

import "encoding/binary"

// CV2 is OpenCV's generator of one thread. OpenCV gives no way to read it, so
// the hook counts: what it was seeded with and how many bytes were drawn since.
type CV2 struct {
	Seed  int64 // -1: never seeded, which is one and the same state in every thread of every process
	Bytes uint64
}

// DecodeCV2 reads the column rng_state.raw.
func DecodeCV2(raw []byte) (CV2, error) {
	if err := checkSize(KindCV2, raw, 16); err != nil {
		return CV2{}, err
	}
	return CV2{int64(binary.LittleEndian.Uint64(raw)), binary.LittleEndian.Uint64(raw[8:])}, nil
}

// Encode is the opposite of DecodeCV2.
func (c *CV2) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(c.Seed))
	return binary.LittleEndian.AppendUint64(b, c.Bytes)
}

// Words is the position in 32-bit words, rounded down.
func (c *CV2) Words() int64 { return int64(c.Bytes / 4) }

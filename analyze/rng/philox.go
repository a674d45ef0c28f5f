package rng

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Philox is NumPy's Philox4x64-10: a counter, encrypted with a key into four
// 64-bit outputs at a time.
type Philox struct {
	Counter [4]uint64 // of the block in Buffer
	Key     [2]uint64
	Buffer  [4]uint64
	Pos     int // words of Buffer already used
	half
}

// DecodePhilox reads the column rng_state.raw.
func DecodePhilox(raw []byte) (Philox, error) {
	var p Philox
	if err := checkSize(KindPhilox, raw, 96); err != nil {
		return p, err
	}
	var w [10]uint64
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	p.Counter, p.Key, p.Buffer = [4]uint64(w[:4]), [2]uint64(w[4:6]), [4]uint64(w[6:])
	p.Pos = int(min(binary.LittleEndian.Uint32(raw[80:]), 4))
	p.half = decodeHalf(raw[84:])
	return p, nil
}

// Encode is the opposite of DecodePhilox.
func (p *Philox) Encode() []byte {
	b := make([]byte, 96)
	for i, w := range append(append(append([]uint64{}, p.Counter[:]...), p.Key[:]...), p.Buffer[:]...) {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	binary.LittleEndian.PutUint32(b[80:], uint32(p.Pos))
	p.half.put(b[84:])
	return b
}

// Uint64 draws the next output.
func (p *Philox) Uint64() uint64 {
	if p.Pos >= 4 {
		for i := range p.Counter {
			if p.Counter[i]++; p.Counter[i] != 0 {
				break
			}
		}
		p.Buffer, p.Pos = philoxBlock(p.Counter, p.Key), 0
	}
	p.Pos++
	return p.Buffer[p.Pos-1]
}

// Uint32 draws half an output, as NumPy does for 32-bit integers.
func (p *Philox) Uint32() uint32 { return p.half.draw(p.Uint64) }

// philoxBlock is Philox4x64-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", 2011).
func philoxBlock(c [4]uint64, k [2]uint64) [4]uint64 {
	for range 10 {
		hi0, lo0 := bits.Mul64(0xd2e7470ee14c6c93, c[0])
		hi1, lo1 := bits.Mul64(0xca5a826395121157, c[2])
		c = [4]uint64{hi1 ^ c[1] ^ k[0], lo1, hi0 ^ c[3] ^ k[1], lo0}
		k[0] += 0x9e3779b97f4a7c15
		k[1] += 0xbb67ae8584caa73b
	}
	return c
}

// Distance is the number of 32-bit words from p to o, negative if o comes
// first. It is false if the keys differ or the states are 1<<48 blocks apart.
func (p *Philox) Distance(o *Philox) (int64, bool) {
	if p.Key != o.Key {
		return 0, false
	}
	var d [4]uint64
	var borrow uint64
	for i := range d {
		d[i], borrow = bits.Sub64(o.Counter[i], p.Counter[i], borrow)
	}
	if d[2] != d[3] || (d[2] != 0 && d[2] != ^uint64(0)) || d[1] != d[2] {
		return 0, false
	}
	n, ok := U128{d[1], d[0]}.signed()
	return 2*(4*n+int64(o.Pos-p.Pos)) - o.words() + p.words(), ok
}

// Python is an expression that makes the same generator in NumPy.
func (p *Philox) Python() string {
	list := func(w []uint64) string {
		s := ""
		for i, v := range w {
			if i > 0 {
				s += ", "
			}
			s += fmt.Sprint(v)
		}
		return "np.array([" + s + "], np.uint64)"
	}
	return fmt.Sprintf("g = np.random.Philox(); g.state = {'bit_generator': 'Philox', "+
		"'state': {'counter': %s, 'key': %s}, 'buffer': %s, 'buffer_pos': %d, 'has_uint32': %d, 'uinteger': %d}",
		list(p.Counter[:]), list(p.Key[:]), list(p.Buffer[:]), p.Pos, p.words(), p.upper)
}

// Advance moves by so many 32-bit words, forwards or backwards; a half-used
// output is rounded up to the next whole one, and no half is kept back.
func (p *Philox) Advance(words int64) {
	steps := halves(words - p.words())
	p.half = half{}
	at := int64(p.Pos) + steps
	blocks := at >> 2
	p.Pos = int(at & 3)
	if p.Pos == 0 { // as the generator itself leaves it: at the end of a block
		p.Pos = 4
		blocks--
	}
	sign := uint64(blocks >> 63)
	var carry uint64
	p.Counter[0], carry = bits.Add64(p.Counter[0], uint64(blocks), 0)
	for i := 1; i < 4; i++ {
		p.Counter[i], carry = bits.Add64(p.Counter[i], sign, carry)
	}
	p.Buffer = philoxBlock(p.Counter, p.Key)
}

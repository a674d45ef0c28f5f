package rng

import "encoding/binary"

// Block is the number of 32-bit words that MT19937 makes at a time.
const Block = 624

const (
	mtShift  = 397 // M of Matsumoto and Nishimura 1998
	mtMatrix = 0x9908b0df
	mtUpper  = 0x80000000
	mtLower  = 0x7fffffff
)

// Key is the state of MT19937 without the position in it: one block of words,
// not yet tempered.
type Key [Block]uint32

// ID names a block by its words 1 to 4: 128 bits. Word 0 is left out because
// after seeding only its top bit belongs to the state.
type ID [4]uint32

// ID of the block.
func (k *Key) ID() ID { return ID{k[1], k[2], k[3], k[4]} }

// DecodeID reads the column rng_state.id.
func DecodeID(b []byte) (ID, error) {
	if err := checkSize("mt19937 id", b, 16); err != nil {
		return ID{}, err
	}
	le := binary.LittleEndian
	return ID{le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])}, nil
}

// Next steps to the following block.
func (k *Key) Next() {
	// One loop per stretch of the recurrence, so that no index needs a modulo:
	// this is the inner loop of the analysis.
	x := k[0]
	for i := 0; i < Block-mtShift; i++ {
		n := k[i+1]
		y := x&mtUpper | n&mtLower
		k[i] = k[i+mtShift] ^ y>>1 ^ -(y&1)&mtMatrix
		x = n
	}
	for i := Block - mtShift; i < Block-1; i++ {
		n := k[i+1]
		y := x&mtUpper | n&mtLower
		k[i] = k[i+mtShift-Block] ^ y>>1 ^ -(y&1)&mtMatrix
		x = n
	}
	y := x&mtUpper | k[0]&mtLower
	k[Block-1] = k[mtShift-1] ^ y>>1 ^ -(y&1)&mtMatrix
}

// Same reports whether two blocks are one and the same state.
func (k *Key) Same(o *Key) bool {
	if (k[0]^o[0])&mtUpper != 0 {
		return false
	}
	return [Block - 1]uint32(k[1:]) == [Block - 1]uint32(o[1:])
}

// Temper turns a word of a block into the output.
func Temper(y uint32) uint32 {
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// MT19937 is the Mersenne twister of Python's random, NumPy's RandomState and
// torch's CPU generator.
type MT19937 struct {
	Key Key
	Pos int // words of the block already used; Block after seeding
}

// DecodeMT19937 reads the column rng_state.raw.
func DecodeMT19937(raw []byte) (MT19937, error) {
	var m MT19937
	if err := checkSize(KindMT19937, raw, 4*Block+4); err != nil {
		return m, err
	}
	for i := range m.Key {
		m.Key[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	m.Pos = int(int32(binary.LittleEndian.Uint32(raw[4*Block:])))
	m.Pos = min(max(m.Pos, 0), Block)
	return m, nil
}

// Encode is the opposite of DecodeMT19937.
func (m *MT19937) Encode() []byte {
	b := make([]byte, 4*Block+4)
	for i, w := range m.Key {
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	binary.LittleEndian.PutUint32(b[4*Block:], uint32(int32(m.Pos)))
	return b
}

// Uint32 draws the next output.
func (m *MT19937) Uint32() uint32 {
	if m.Pos >= Block {
		m.Key.Next()
		m.Pos = 0
	}
	m.Pos++
	return Temper(m.Key[m.Pos-1])
}

// SeedMT19937 is the state after np.random.seed(s), np.random.RandomState(s)
// and torch.manual_seed(s) for 0 <= s < 1<<32 (init_genrand of 2002).
func SeedMT19937(s uint32) MT19937 {
	m := MT19937{Pos: Block}
	m.Key[0] = s
	for i := 1; i < Block; i++ {
		m.Key[i] = 1812433253*(m.Key[i-1]^m.Key[i-1]>>30) + uint32(i)
	}
	return m
}

// SeedPython is the state after random.seed(s) (init_by_array of 2002 with the
// one or two words of s).
func SeedPython(s uint64) MT19937 {
	words := []uint32{uint32(s)}
	if s>>32 != 0 {
		words = append(words, uint32(s>>32))
	}
	m := SeedMT19937(19650218)
	k := &m.Key
	i, j := 1, 0
	for range Block {
		k[i] = (k[i] ^ (k[i-1]^k[i-1]>>30)*1664525) + words[j] + uint32(j)
		if i++; i == Block {
			k[0], i = k[Block-1], 1
		}
		j = (j + 1) % len(words)
	}
	for range Block - 1 {
		k[i] = (k[i] ^ (k[i-1]^k[i-1]>>30)*1566083941) - uint32(i)
		if i++; i == Block {
			k[0], i = k[Block-1], 1
		}
	}
	k[0] = mtUpper
	return m
}

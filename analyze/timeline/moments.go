package timeline

import (
	"encoding/binary"
	"math/bits"
)

// moments of the deliveries of a pass: counted from its begin, in units that grow
// with its length, rounded down. Most come one after another: blocks of them that
// nothing was added to for a while are kept as steps from each to the next, in as few bits as
// the longest step needs.
type moments struct {
	begin  int64
	shift  uint8 // of nanoseconds
	blocks []momentBlock
	open   int // the block that was added to last
}

const perBlock = 128

// momentBlock is so many moments: units since the begin plus 1, or 0 where none was set.
type momentBlock struct {
	plain  *[perBlock]uint32 // nil: packed
	packed []byte            // nil: none was set
}

func (m *moments) set(i int, ns int64) {
	if m.begin == 0 {
		m.begin, m.shift = ns-1, 10
	}
	b, k := i/perBlock, i%perBlock
	for len(m.blocks) <= b {
		m.blocks = append(m.blocks, momentBlock{})
	}
	if b != m.open {
		m.blocks[m.open].pack()
		m.open = b
	}
	if m.blocks[b].plain == nil {
		plain := m.blocks[b].all()
		m.blocks[b] = momentBlock{plain: &plain}
	}
	if m.blocks[b].plain[k] != 0 {
		return
	}
	after := uint64(max(ns-m.begin, 0))
	for after>>m.shift >= 1<<32-2 {
		m.coarser()
	}
	m.blocks[b].plain[k] = uint32(after>>m.shift) + 1
}

// coarser doubles the unit.
func (m *moments) coarser() {
	m.shift++
	for b := range m.blocks {
		all := m.blocks[b].all()
		for k, v := range all {
			if v > 0 {
				all[k] = (v-1)>>1 + 1
			}
		}
		m.blocks[b] = momentBlock{plain: &all}
		if b != m.open {
			m.blocks[b].pack()
		}
	}
}

// get is 0 where none was set.
func (m *moments) get(i int) int64 {
	if i < 0 || i/perBlock >= len(m.blocks) {
		return 0
	}
	v := m.blocks[i/perBlock].at(i % perBlock)
	if v == 0 {
		return 0
	}
	return m.begin + int64(uint64(v-1)<<m.shift)
}

// tells reports whether get gives this time, as it would be rounded.
func (m *moments) tells(i int, ns int64) bool {
	at := m.get(i)
	return at != 0 && at <= ns && ns-at < 1<<m.shift
}

// A packed block: the first value and the smallest step between two (32 bits each, the step with its
// sign), how many bits what a step is more than that takes, and these bits, of all
// values that are set; which those are before it, unless all are.
const (
	packedHead = 4 + 8 + 1
	packedMask = perBlock / 8
	someSet    = 1 << 7 // in the number of bits
)

// pack a block that is plain.
func (b *momentBlock) pack() {
	if b.plain == nil {
		return
	}
	var steps [perBlock]int64
	var mask [packedMask]byte
	n, first, last, least, most := 0, int64(0), int64(0), int64(0), int64(0)
	for k, v := range b.plain {
		if v == 0 {
			continue
		}
		mask[k/8] |= 1 << (k % 8)
		if n == 0 {
			first = int64(v)
		} else {
			step := int64(v) - last
			if steps[n-1] = step; n == 1 {
				least, most = step, step
			}
			least, most = min(least, step), max(most, step)
		}
		last = int64(v)
		n++
	}
	b.plain = nil
	if n == 0 {
		return
	}
	width := bits.Len64(uint64(most - least))
	size := packedHead + ((n-1)*width+7)/8
	if n < perBlock {
		size += packedMask
	}
	b.packed = make([]byte, packedHead, size)
	binary.LittleEndian.PutUint32(b.packed, uint32(first))
	binary.LittleEndian.PutUint64(b.packed[4:], uint64(least))
	b.packed[12] = byte(width)
	if n < perBlock {
		b.packed[12] |= someSet
		b.packed = append(b.packed, mask[:]...)
	}
	w := bitWriter{to: b.packed}
	for _, step := range steps[:n-1] {
		w.write(uint64(step-least), width)
	}
	b.packed = w.flush()
}

// at is the value of one.
func (b *momentBlock) at(k int) uint32 {
	if b.plain != nil {
		return b.plain[k]
	}
	all := b.all()
	return all[k]
}

// all values of a block.
func (b *momentBlock) all() (all [perBlock]uint32) {
	switch {
	case b.plain != nil:
		return *b.plain
	case b.packed == nil:
		return all
	}
	value, least := int64(binary.LittleEndian.Uint32(b.packed)), int64(binary.LittleEndian.Uint64(b.packed[4:]))
	width, rest := int(b.packed[12]&^someSet), b.packed[packedHead:]
	var mask []byte
	if b.packed[12]&someSet != 0 {
		mask, rest = rest[:packedMask], rest[packedMask:]
	}
	r := bitReader{from: rest}
	for k, n := 0, 0; k < perBlock; k++ {
		if mask != nil && mask[k/8]&(1<<(k%8)) == 0 {
			continue
		}
		if n > 0 {
			value += least + int64(r.read(width))
		}
		all[k] = uint32(value)
		n++
	}
	return all
}

// bitWriter appends numbers of some bits each, at most 33, the lowest first.
type bitWriter struct {
	to    []byte
	bits  uint64
	count int
}

func (w *bitWriter) write(v uint64, width int) {
	w.bits |= v << w.count
	for w.count += width; w.count >= 8; w.count -= 8 {
		w.to = append(w.to, byte(w.bits))
		w.bits >>= 8
	}
}

func (w *bitWriter) flush() []byte {
	if w.count > 0 {
		w.to = append(w.to, byte(w.bits))
	}
	return w.to
}

type bitReader struct {
	from  []byte
	bits  uint64
	count int
}

func (r *bitReader) read(width int) uint64 {
	for ; r.count < width; r.count += 8 {
		r.bits |= uint64(r.from[0]) << r.count
		r.from = r.from[1:]
	}
	v := r.bits & (1<<width - 1)
	r.bits >>= width
	r.count -= width
	return v
}

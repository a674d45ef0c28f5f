package traces

import (
	"encoding/binary"
	"errors"
)

var errFlat = errors.New("flatbuffer points outside of its message")

// flatbuf reads FlatBuffers that nobody vouches for. Where Google's accessors
// index without looking, every position here is checked, and the first bad one
// sets err; from then on all values are zero.
type flatbuf struct {
	b   []byte
	err error
}

// flatTable is a table by the positions of it and of its vtable.
type flatTable struct{ pos, vtable int }

func (f *flatbuf) u16(pos int) int   { return int(binary.LittleEndian.Uint16(f.scalar(pos, 2))) }
func (f *flatbuf) u32(pos int) int   { return int(binary.LittleEndian.Uint32(f.scalar(pos, 4))) }
func (f *flatbuf) i64(pos int) int64 { return int64(binary.LittleEndian.Uint64(f.scalar(pos, 8))) }

var zeros [8]byte

func (f *flatbuf) scalar(pos, n int) []byte {
	if f.err != nil || pos < 0 || pos > len(f.b)-n {
		f.err = errFlat
		return zeros[:n]
	}
	return f.b[pos : pos+n]
}

func (f *flatbuf) root() flatTable { return f.table(f.u32(0)) }

func (f *flatbuf) table(pos int) flatTable {
	t := flatTable{pos, pos - int(int32(f.u32(pos)))}
	if size := f.u16(t.vtable); f.err == nil && (size < 4 || t.vtable+size > len(f.b)) {
		f.err = errFlat
	}
	return t
}

// field is the position of a field's value, 0 where the field is absent.
func (f *flatbuf) field(t flatTable, slot int) int {
	entry := 4 + 2*slot
	if f.err != nil || entry+2 > f.u16(t.vtable) {
		return 0
	}
	if o := f.u16(t.vtable + entry); o != 0 {
		return t.pos + o
	}
	return 0
}

func (f *flatbuf) byteField(t flatTable, slot int) byte {
	if p := f.field(t, slot); p != 0 {
		return f.scalar(p, 1)[0]
	}
	return 0
}

func (f *flatbuf) int16Field(t flatTable, slot int) int {
	if p := f.field(t, slot); p != 0 {
		return int(int16(f.u16(p)))
	}
	return 0
}

func (f *flatbuf) int32Field(t flatTable, slot int) int {
	if p := f.field(t, slot); p != 0 {
		return int(int32(f.u32(p)))
	}
	return 0
}

func (f *flatbuf) int64Field(t flatTable, slot int) int64 {
	if p := f.field(t, slot); p != 0 {
		return f.i64(p)
	}
	return 0
}

// tableField is the table that a field refers to.
func (f *flatbuf) tableField(t flatTable, slot int) (flatTable, bool) {
	p := f.field(t, slot)
	if p == 0 {
		return flatTable{}, false
	}
	sub := f.table(p + f.u32(p))
	return sub, f.err == nil
}

// vector is the position of the first element and the number of elements of a
// vector of elements of width bytes. All of it lies in the message.
func (f *flatbuf) vector(t flatTable, slot, width int) (pos, n int) {
	p := f.field(t, slot)
	if p == 0 {
		return 0, 0
	}
	p += f.u32(p)
	n = f.u32(p)
	if f.err != nil || n > (len(f.b)-p-4)/width {
		f.err = errFlat
		return 0, 0
	}
	return p + 4, n
}

func (f *flatbuf) stringField(t flatTable, slot int) string {
	pos, n := f.vector(t, slot, 1)
	return string(f.b[pos : pos+n])
}

// element is the i-th table of a vector of tables that begins at pos.
func (f *flatbuf) element(pos, i int) flatTable {
	p := pos + 4*i
	return f.table(p + f.u32(p))
}

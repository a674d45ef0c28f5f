package traces

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// buffered is the unflushed rows of one table as Arrow columns. A buffer keeps
// its room after a flush; maxBatchBytes bounds it.
type buffered struct {
	table   *table
	cols    []colBuffer
	rows    int
	bytes   int // of all columns
	firstTS int64
	lastTS  int64
}

// colBuffer is one column: values (or offsets, from 0) and what the offsets
// point into.
type colBuffer struct {
	fixed []byte
	data  []byte
}

func newBuffered(t *table) *buffered {
	b := &buffered{table: t, cols: make([]colBuffer, len(t.columns))}
	b.reset()
	return b
}

func (b *buffered) reset() {
	for i := range b.cols {
		c := &b.cols[i]
		c.fixed, c.data = c.fixed[:0], c.data[:0]
		if b.table.columns[i].kind >= kindString {
			c.fixed = append(c.fixed, 0, 0, 0, 0)
		}
	}
	b.rows, b.bytes = 0, 0
}

// size is what the variable columns of a row take.
func (b *buffered) size(row unsafe.Pointer) (n int) {
	for i := range b.table.columns {
		col := &b.table.columns[i]
		p := unsafe.Add(row, col.offset)
		switch col.kind {
		case kindString:
			n += len(*(*string)(p))
		case kindBytes:
			n += len(*(*[]byte)(p))
		case kindInts:
			n += 8 * len(*(*[]int64)(p))
		}
	}
	return n
}

// add appends a row of b.table's struct with the given number.
func (b *buffered) add(row unsafe.Pointer, seq uint64) {
	le := binary.LittleEndian
	bytes := 0
	for i := range b.table.columns {
		col, c := &b.table.columns[i], &b.cols[i]
		p := unsafe.Add(row, col.offset)
		switch col.kind {
		case kindInt32, kindUint32:
			c.fixed = le.AppendUint32(c.fixed, *(*uint32)(p))
		case kindInt64, kindUint64:
			c.fixed = le.AppendUint64(c.fixed, *(*uint64)(p))
		case kindBool:
			if b.rows%8 == 0 {
				c.fixed = append(c.fixed, 0)
			}
			if *(*bool)(p) {
				c.fixed[b.rows/8] |= 1 << (b.rows % 8)
			}
		case kindString:
			s := *(*string)(p)
			if !utf8.ValidString(s) { // readers in other languages refuse the whole column
				s = strings.ToValidUTF8(s, "\uFFFD")
			}
			c.data = append(c.data, s...)
			c.fixed = le.AppendUint32(c.fixed, uint32(len(c.data)))
		case kindBytes:
			c.data = append(c.data, *(*[]byte)(p)...)
			c.fixed = le.AppendUint32(c.fixed, uint32(len(c.data)))
		case kindInts:
			for _, v := range *(*[]int64)(p) {
				c.data = le.AppendUint64(c.data, uint64(v))
			}
			c.fixed = le.AppendUint32(c.fixed, uint32(len(c.data)/8))
		}
		bytes += len(c.fixed) + len(c.data)
	}
	le.PutUint64(b.cols[0].fixed[8*b.rows:], seq) // Head.Seq is column 0
	ts := (*Head)(row).TsNS
	if b.rows == 0 || ts < b.firstTS {
		b.firstTS = ts
	}
	if b.rows == 0 || ts > b.lastTS {
		b.lastTS = ts
	}
	b.rows++
	b.bytes = bytes
}

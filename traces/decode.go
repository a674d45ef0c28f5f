package traces

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/klauspost/compress/zstd"
)

// decoder turns checked batches into rows. It is made for one goroutine.
type decoder struct {
	zstd     *zstd.Decoder
	unpacked []byte            // of the batch at hand: all its buffers, one after another
	strings  map[string]string // short strings that were met, so that they are made once
}

const (
	maxInternLength = 64
	maxInterned     = 4096
)

func newDecoder() (*decoder, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxUnpackedBytes), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	return &decoder{zstd: z, strings: map[string]string{}}, nil
}

func (d *decoder) close() { d.zstd.Close() }

// rows decodes a batch to a slice of t's struct. Columns that are not in the
// stream stay zero.
func (d *decoder) rows(t *table, s *storedSchema, b *storedBatch) (any, unsafe.Pointer, error) {
	d.unpacked = d.unpacked[:0]
	rows, base := t.rows(b.rows)
	nodes, buffers := b.nodes, b.buffers
	for _, c := range s.columns {
		if c.known != nil {
			if err := d.column(c.known, t.typ.Size(), base, b, nodes, buffers); err != nil {
				return nil, nil, fmt.Errorf("column %s: %w", c.name, err)
			}
		}
		nodes, buffers = nodes[c.nodes:], buffers[c.buffers:]
	}
	return rows, base, nil
}

// column fills one field of all rows; base is the first row, stride its size.
func (d *decoder) column(c *column, stride uintptr, base unsafe.Pointer, b *storedBatch, nodes, buffers []span) error {
	if nodes[0] != (span{int64(b.rows), 0}) {
		return fmt.Errorf("%d values, %d nulls in a batch of %d rows", nodes[0].a, nodes[0].b, b.rows)
	}
	p := unsafe.Add(base, c.offset)
	switch c.kind {
	case kindString, kindBytes:
		return d.varColumn(c.kind, stride, p, b, buffers[1], buffers[2], 1)
	case kindInts:
		n := nodes[1].a
		if nodes[1].b != 0 || n < 0 || n > maxUnpackedBytes/8 {
			return fmt.Errorf("%d list values, %d nulls", n, nodes[1].b)
		}
		return d.varColumn(c.kind, stride, p, b, buffers[1], buffers[3], 8)
	}
	width := c.kind.width()
	size := width * b.rows
	if c.kind == kindBool {
		size = (b.rows + 7) / 8
	}
	v, err := d.buffer(b, buffers[1], size, size)
	if err != nil {
		return err
	}
	for i := range b.rows {
		p := unsafe.Add(p, uintptr(i)*stride)
		switch {
		case width == 8:
			*(*uint64)(p) = binary.LittleEndian.Uint64(v[8*i:])
		case width == 4:
			*(*uint32)(p) = binary.LittleEndian.Uint32(v[4*i:])
		default:
			*(*bool)(p) = v[i/8]>>(i%8)&1 != 0
		}
	}
	return nil
}

// varColumn fills strings, byte slices or lists, whose values take width bytes.
func (d *decoder) varColumn(k columnKind, stride uintptr, p unsafe.Pointer, b *storedBatch, offsets, values span, width int) error {
	size := 4 * (b.rows + 1)
	offs, err := d.buffer(b, offsets, size, size)
	if err != nil {
		return fmt.Errorf("offsets: %w", err)
	}
	begin := 0
	for i := range b.rows + 1 {
		o := int(int32(binary.LittleEndian.Uint32(offs[4*i:])))
		if o < begin || i == 0 && o != 0 {
			return fmt.Errorf("offset %d of row %d after %d", o, i, begin)
		}
		begin = o
	}
	data, err := d.buffer(b, values, width*begin, maxUnpackedBytes)
	if err != nil {
		return err
	}
	from := 0
	for i := range b.rows {
		to := width * int(binary.LittleEndian.Uint32(offs[4*i+4:]))
		v := data[from:to]
		from = to
		p := unsafe.Add(p, uintptr(i)*stride)
		switch {
		case len(v) == 0: // nil and "" stay
		case k == kindString:
			*(*string)(p) = d.text(v)
		case k == kindBytes:
			*(*[]byte)(p) = append([]byte(nil), v...)
		default:
			ints := make([]int64, len(v)/8)
			for j := range ints {
				ints[j] = int64(binary.LittleEndian.Uint64(v[8*j:]))
			}
			*(*[]int64)(p) = ints
		}
	}
	return nil
}

func (d *decoder) text(b []byte) string {
	if len(b) > maxInternLength {
		return string(b)
	}
	if s, ok := d.strings[string(b)]; ok {
		return s
	}
	if len(d.strings) >= maxInterned {
		clear(d.strings)
	}
	s := string(b)
	d.strings[s] = s
	return s
}

// padded is the longest that a buffer of n bytes may be: Arrow writers may pad
// to 64.
func padded(n int) int { return (n + 63) &^ 63 }

// buffer is the decompressed bytes of a buffer: at least need, at most limit
// and padding. They are valid for this batch.
func (d *decoder) buffer(b *storedBatch, at span, need, limit int) ([]byte, error) {
	raw := b.body[at.a : at.a+at.b] // parseBatch checked both
	if !b.compressed || len(raw) == 0 {
		return fits(raw, need, limit)
	}
	if len(raw) < bufferPrefix {
		return nil, fmt.Errorf("compressed buffer of %d bytes", len(raw))
	}
	size := binary.LittleEndian.Uint64(raw)
	raw = raw[bufferPrefix:]
	if size == notCompressed {
		return fits(raw, need, limit)
	}
	start := len(d.unpacked)
	if size > uint64(padded(limit)) || size < uint64(need) || size > uint64(maxUnpackedBytes-start) {
		return nil, fmt.Errorf("decompressed size %d, want %d", size, need)
	}
	if start+int(size) > cap(d.unpacked) {
		// The buffers handed out before keep the old array.
		d.unpacked = append(make([]byte, 0, start+int(size)+maxBatchBytes), d.unpacked...)
	}
	out, err := d.zstd.DecodeAll(raw, d.unpacked[start:start:start+int(size)])
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if len(out) != int(size) {
		return nil, errors.New("decompressed to another size than declared")
	}
	d.unpacked = d.unpacked[:start+int(size)]
	return out, nil
}

func fits(b []byte, need, limit int) ([]byte, error) {
	if len(b) < need || len(b) > padded(limit) {
		return nil, fmt.Errorf("buffer of %d bytes, want %d", len(b), need)
	}
	return b, nil
}

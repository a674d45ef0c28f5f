package traces

import (
	"encoding/binary"

	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/klauspost/compress/zstd"
)

// Numbers of Arrow's Message.fbs and Schema.fbs (format version V5).
const (
	metadataV5     = 4
	headerSchema   = 1
	headerBatch    = 3
	codecZstd      = 1
	typeInt        = 2
	typeBinary     = 4
	typeUtf8       = 5
	typeBool       = 6
	typeList       = 12
	continuation   = 0xFFFFFFFF
	messagePrefix  = 8  // continuation, length of the metadata
	bufferPrefix   = 8  // uncompressed length; -1: not compressed
	structWidth    = 16 // of a FieldNode and of a Buffer
	alignment      = 8
	notCompressed  = ^uint64(0)
	minCompression = 32 // shorter buffers never get smaller
)

// endMark closes an Arrow stream.
var endMark = []byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}

// encoder makes Arrow messages. One serves all tables of a writer, because a
// zstd encoder is 1 to 2 MB.
type encoder struct {
	fb   *flatbuffers.Builder
	zstd *zstd.Encoder
	body []byte
	out  []byte
	bufs []span
	node []span
}

// span is an Arrow Buffer (offset, length) or FieldNode (length, null count).
type span struct{ a, b int64 }

func newEncoder() (*encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(true),
		// Buffers of some hundred bytes have matches; codes for their literals save 2 % of a trace, for half of the time.
		zstd.WithNoEntropyCompression(true))
	if err != nil {
		return nil, err
	}
	return &encoder{fb: flatbuffers.NewBuilder(2048), zstd: z}, nil
}

// schema is the first message of a stream; valid until the next call.
func (e *encoder) schema(t *table, meta [][2]string) []byte {
	e.fb.Reset()
	b := e.fb
	fields := make([]flatbuffers.UOffsetT, len(t.columns))
	for i, c := range t.columns {
		fields[i] = field(b, c.name, c.kind)
	}
	fieldVec := offsets(b, fields)
	pairs := make([]flatbuffers.UOffsetT, len(meta))
	for i, kv := range meta {
		k, v := b.CreateString(kv[0]), b.CreateString(kv[1])
		b.StartObject(2)
		b.PrependUOffsetTSlot(0, k, 0)
		b.PrependUOffsetTSlot(1, v, 0)
		pairs[i] = b.EndObject()
	}
	pairVec := offsets(b, pairs)
	b.StartObject(4) // Schema: endianness (0 = little), fields, custom_metadata, features
	b.PrependUOffsetTSlot(1, fieldVec, 0)
	b.PrependUOffsetTSlot(2, pairVec, 0)
	return e.message(headerSchema, b.EndObject(), nil)
}

func offsets(b *flatbuffers.Builder, items []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(4, len(items), 4)
	for i := len(items) - 1; i >= 0; i-- {
		b.PrependUOffsetT(items[i])
	}
	return b.EndVector(len(items))
}

func field(b *flatbuffers.Builder, name string, k columnKind) flatbuffers.UOffsetT {
	var children []flatbuffers.UOffsetT
	if k == kindInts {
		children = append(children, field(b, "item", kindInt64))
	}
	kids := offsets(b, children)
	n := b.CreateString(name)
	id, typ := fieldType(b, k)
	b.StartObject(7) // Field: name, nullable (false), type_type, type, dictionary, children, custom_metadata
	b.PrependUOffsetTSlot(0, n, 0)
	b.PrependByteSlot(2, id, 0)
	b.PrependUOffsetTSlot(3, typ, 0)
	b.PrependUOffsetTSlot(5, kids, 0)
	return b.EndObject()
}

func fieldType(b *flatbuffers.Builder, k columnKind) (id byte, typ flatbuffers.UOffsetT) {
	switch k {
	case kindBool:
		id = typeBool
	case kindString:
		id = typeUtf8
	case kindBytes:
		id = typeBinary
	case kindInts:
		id = typeList
	default:
		b.StartObject(2) // Int: bitWidth, is_signed
		b.PrependInt32Slot(0, int32(8*k.width()), 0)
		b.PrependBoolSlot(1, k == kindInt32 || k == kindInt64, false)
		return typeInt, b.EndObject()
	}
	b.StartObject(0)
	return id, b.EndObject()
}

// batch is a record batch message of all rows in rows; valid until the next call.
func (e *encoder) batch(rows *buffered) []byte {
	e.body, e.bufs, e.node = e.body[:0], e.bufs[:0], e.node[:0]
	for i := range rows.cols {
		k, c := rows.table.columns[i].kind, &rows.cols[i]
		e.node = append(e.node, span{int64(rows.rows), 0})
		e.buffer(nil) // validity: no nulls
		e.buffer(c.fixed)
		switch k {
		case kindString, kindBytes:
			e.buffer(c.data)
		case kindInts:
			e.node = append(e.node, span{int64(len(c.data) / 8), 0})
			e.buffer(nil)
			e.buffer(c.data)
		}
	}
	e.fb.Reset()
	b := e.fb
	nodes, bufs := spans(b, e.node), spans(b, e.bufs)
	b.StartObject(2) // BodyCompression: codec, method (0 = buffer)
	b.PrependByteSlot(0, codecZstd, 0)
	compression := b.EndObject()
	b.StartObject(5) // RecordBatch: length, nodes, buffers, compression, variadicBufferCounts
	b.PrependInt64Slot(0, int64(rows.rows), 0)
	b.PrependUOffsetTSlot(1, nodes, 0)
	b.PrependUOffsetTSlot(2, bufs, 0)
	b.PrependUOffsetTSlot(3, compression, 0)
	return e.message(headerBatch, b.EndObject(), e.body)
}

func spans(b *flatbuffers.Builder, items []span) flatbuffers.UOffsetT {
	b.StartVector(structWidth, len(items), 8)
	for i := len(items) - 1; i >= 0; i-- {
		b.PrependInt64(items[i].b)
		b.PrependInt64(items[i].a)
	}
	return b.EndVector(len(items))
}

// buffer appends one buffer of the body, compressed where that is shorter.
func (e *encoder) buffer(raw []byte) {
	start := len(e.body)
	if len(raw) > 0 {
		e.body = binary.LittleEndian.AppendUint64(e.body, uint64(len(raw)))
		if len(raw) >= minCompression {
			e.body = e.zstd.EncodeAll(raw, e.body)
		}
		if len(raw) < minCompression || len(e.body)-start-bufferPrefix >= len(raw) {
			e.body = binary.LittleEndian.AppendUint64(e.body[:start], notCompressed)
			e.body = append(e.body, raw...)
		}
	}
	e.bufs = append(e.bufs, span{int64(start), int64(len(e.body) - start)})
	e.body = pad(e.body)
}

func pad(b []byte) []byte {
	for len(b)%alignment != 0 {
		b = append(b, 0)
	}
	return b
}

// message wraps a header and its body as Arrow's encapsulated message.
func (e *encoder) message(kind byte, header flatbuffers.UOffsetT, body []byte) []byte {
	b := e.fb
	b.StartObject(5) // Message: version, header_type, header, bodyLength, custom_metadata
	b.PrependInt16Slot(0, metadataV5, 0)
	b.PrependByteSlot(1, kind, 0)
	b.PrependUOffsetTSlot(2, header, 0)
	b.PrependInt64Slot(3, int64(len(body)), 0)
	b.Finish(b.EndObject())
	e.out = binary.LittleEndian.AppendUint32(e.out[:0], continuation)
	e.out = append(e.out, 0, 0, 0, 0)
	e.out = pad(append(e.out, b.FinishedBytes()...))
	binary.LittleEndian.PutUint32(e.out[4:], uint32(len(e.out)-messagePrefix))
	e.out = append(e.out, body...)
	return e.out
}

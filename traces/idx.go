package traces

import (
	"encoding/binary"
	"hash/crc32"
)

// idxSize is the length of an index record in bytes. Record 0 is the schema
// message, each further one a record batch, in their order in the stream.
const idxSize = 48

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// idxRecord vouches for one message of a segment. FORMAT.md has its layout.
type idxRecord struct {
	offset       uint64 // of the message in the stream
	length       uint32 // of the message, with its padding
	rows         uint32
	minTS, maxTS int64
	seq          uint64 // of the first row
	crc          uint32 // CRC-32C of the message
}

func (r idxRecord) append(b []byte) []byte {
	le := binary.LittleEndian
	start := len(b)
	b = le.AppendUint64(b, r.offset)
	b = le.AppendUint32(b, r.length)
	b = le.AppendUint32(b, r.rows)
	b = le.AppendUint64(b, uint64(r.minTS))
	b = le.AppendUint64(b, uint64(r.maxTS))
	b = le.AppendUint64(b, r.seq)
	b = le.AppendUint32(b, r.crc)
	return le.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// parseIdx reads the record in b; ok is false where its own checksum is wrong.
func parseIdx(b []byte) (r idxRecord, ok bool) {
	le := binary.LittleEndian
	r = idxRecord{
		offset: le.Uint64(b), length: le.Uint32(b[8:]), rows: le.Uint32(b[12:]),
		minTS: int64(le.Uint64(b[16:])), maxTS: int64(le.Uint64(b[24:])),
		seq: le.Uint64(b[32:]), crc: le.Uint32(b[40:]),
	}
	return r, le.Uint32(b[44:]) == crc32.Checksum(b[:44], castagnoli)
}

func (r idxRecord) end() uint64 { return r.offset + uint64(r.length) }

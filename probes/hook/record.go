package hook

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The record types of shim/PROTOCOL.md.
const (
	typePad = iota
	typeProcess
	typeLoader
	typePass
	typeWorker
	typePut
	typeFetch
	typeNext
	typeSlot
	typeState
	typeOptimizer
	typeException
	typeDist
	typeErrors
	typeExtent
	typePrivate
	typeDataset
	typeAttribute
	typeDigest
	typeLeftover
	typeOpened
	typeSetEpoch
)

const (
	recordHeader = 24
	padHeader    = 8 // of a pad record: it may be as short as that
)

var errRecord = errors.New("damaged record")

// record is one record; payload points into the buffer that it was read from.
type record struct {
	kind    uint16
	tsNS    int64
	number  uint32
	payload []byte
}

// nextRecord takes the record at the begin of b. b is the memory of a process
// that may have gone wild: any bytes give an error or a record within b. A pad
// record has no number.
func nextRecord(b []byte) (r record, rest []byte, err error) {
	if len(b) < padHeader {
		return r, nil, fmt.Errorf("%w: %d bytes are left", errRecord, len(b))
	}
	length := binary.LittleEndian.Uint32(b)
	r.kind = binary.LittleEndian.Uint16(b[4:])
	if length < padHeader || length%8 != 0 || uint64(length) > uint64(len(b)) {
		return r, nil, fmt.Errorf("%w: length %d, %d bytes are left", errRecord, length, len(b))
	}
	if r.kind == typePad {
		return r, b[length:], nil
	}
	pad := uint32(binary.LittleEndian.Uint16(b[6:]))
	if length < recordHeader || pad > 7 || recordHeader+pad > length {
		return r, nil, fmt.Errorf("%w: length %d of type %d, %d bytes of it padding", errRecord, length, r.kind, pad)
	}
	r.tsNS = int64(binary.LittleEndian.Uint64(b[8:]))
	r.number = binary.LittleEndian.Uint32(b[20:])
	r.payload = b[recordHeader : length-pad]
	return r, b[length:], nil
}

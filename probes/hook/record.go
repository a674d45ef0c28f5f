package hook

import (
	"errors"
	"fmt"
)

// The record types of shim/PROTOCOL.md, in the order of shim's layouts.py.
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
	typeAct
	typeSearch
	typeSplit
	typeTransform
	typePin
	typeBatchBytes
	typeContainer
	typeFootprint
	typeCopy
	typeCallSite
)

// The fixed part of a record.
var (
	recordHeader = layouts.Record.Size
	padHeader    = at(layouts.Record, "t_ns", 'Q') // of a pad record: it may be as short as that
	recordLength = at(layouts.Record, "length", 'I')
	recordType   = at(layouts.Record, "type", 'H')
	recordPad    = at(layouts.Record, "pad", 'H')
	recordTime   = at(layouts.Record, "t_ns", 'Q')
	recordThread = at(layouts.Record, "thread", 'I')
	recordNumber = at(layouts.Record, "number", 'I')
)

var errRecord = errors.New("damaged record")

// record is one record; payload points into the buffer that it was read from.
type record struct {
	kind    uint16
	tsNS    int64
	number  uint32
	thread  uint32 // low bits of its identity
	payload []byte
}

// nextRecord takes the record at the begin of b. b is the memory of a process
// that may have gone wild: any bytes give an error or a record within b. A pad
// record has no number.
func nextRecord(b []byte) (r record, rest []byte, err error) {
	if len(b) < padHeader {
		return r, nil, fmt.Errorf("%w: %d bytes are left", errRecord, len(b))
	}
	length := u32(b, recordLength)
	r.kind = u16(b, recordType)
	if length < uint32(padHeader) || length%8 != 0 || uint64(length) > uint64(len(b)) {
		return r, nil, fmt.Errorf("%w: length %d, %d bytes are left", errRecord, length, len(b))
	}
	if r.kind == typePad {
		return r, b[length:], nil
	}
	pad := uint32(u16(b, recordPad))
	if fixed := uint32(recordHeader); length < fixed || pad > 7 || fixed+pad > length {
		return r, nil, fmt.Errorf("%w: length %d of type %d, %d bytes of it padding", errRecord, length, r.kind, pad)
	}
	r.tsNS = int64(u64(b, recordTime))
	r.number, r.thread = u32(b, recordNumber), u32(b, recordThread)
	r.payload = b[recordHeader : length-pad]
	return r, b[length:], nil
}

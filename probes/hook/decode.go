package hook

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// The names that the numbers of the binary records stand for.
var (
	statuses = []string{"stop", "ok", "error"}
	whens    = []string{"begin", "found", "before", "after", "fork", "task", "end"}
)

const (
	maxKeys  = 256
	gradFlag = 256
)

// decode turns a record into the row of its table, nil for a type that it does
// not know. ok is false if the payload is not as PROTOCOL.md says. Nothing in
// the row points into the record.
func decode(rec record, h traces.Head) (row any, ok bool) {
	h.TsNS = rec.tsNS
	switch rec.kind {
	case typePut:
		return decodePut(rec.payload, h)
	case typeFetch:
		return decodeFetch(rec.payload, h)
	case typeNext:
		return decodeNext(rec.payload, h)
	case typeState:
		return decodeState(rec.payload, h)
	case typeDigest:
		return decodeDigest(rec.payload, h)
	}
	row = blank(rec.kind, h)
	if row == nil {
		return nil, true
	}
	f, err := parseFacts(rec.payload)
	if err != nil {
		return nil, false
	}
	f.fill(row)
	return row, true
}

// blank is a row of a JSON record whose keys are all missing, that is unknown.
func blank(kind uint16, h traces.Head) any {
	switch kind {
	case typeLoader:
		return &traces.Loader{Head: h, Length: -1, BatchSize: -1, Prefetch: -1, SamplerEpoch: -1, SamplerRank: -1, SamplerReplicas: -1, SamplerSeed: -1}
	case typePass:
		return &traces.Pass{Head: h, SamplerEpoch: -1}
	case typeWorker:
		return &traces.Worker{Head: h}
	case typeOptimizer:
		return &traces.Optimizer{Head: h}
	case typeException:
		return &traces.Exception{Head: h, Sample: -1}
	case typeDist:
		return &traces.Dist{Head: h}
	case typeExtent:
		return &traces.Extent{Head: h}
	case typePrivate:
		return &traces.Private{Head: h}
	case typeDataset:
		return &traces.Dataset{Head: h, Length: -1}
	case typeLeftover:
		return &traces.Leftover{Head: h, Worker: -1}
	case typeOpened:
		return &traces.Opened{Head: h, Source: "fd"}
	case typeSetEpoch:
		return &traces.SetEpoch{Head: h, Epoch: -1}
	}
	return nil
}

// fields reads little-endian numbers from the front of b. Reading past the end
// gives zeros and is remembered.
type fields struct {
	b     []byte
	short bool
}

func (f *fields) take(n int) []byte {
	if len(f.b) < n {
		f.short = true
		return make([]byte, n)
	}
	v := f.b[:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) u16() uint16 { return binary.LittleEndian.Uint16(f.take(2)) }
func (f *fields) u32() uint32 { return binary.LittleEndian.Uint32(f.take(4)) }
func (f *fields) i32() int32  { return int32(f.u32()) }
func (f *fields) u64() uint64 { return binary.LittleEndian.Uint64(f.take(8)) }
func (f *fields) i64() int64  { return int64(f.u64()) }

func decodePut(payload []byte, h traces.Head) (any, bool) {
	f := fields{b: payload}
	row := traces.BatchPut{Head: h, Loader: f.u32(), Pass: f.u32(), Batch: f.u32(), Worker: f.i32(), DurNS: f.i64(), First: f.u32()}
	n := f.i32()
	if n == -1 {
		row.Keys = strings.ToValidUTF8(string(f.b[:min(len(f.b), maxKeys)]), "")
		return &row, !f.short
	}
	var ok, too bool
	row.Indices, ok = f.i64s(int64(n))
	if len(f.b) > 0 {
		row.IDs, too = f.i64s(int64(n))
		ok = ok && too
	}
	return &row, ok && !f.short
}

// i64s is n numbers, if there are as many.
func (f *fields) i64s(n int64) ([]int64, bool) {
	if n < 0 || n > int64(len(f.b)/8) {
		return nil, false
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = f.i64()
	}
	return list, true
}

const digestSize = 16

func decodeDigest(payload []byte, h traces.Head) (any, bool) {
	f := fields{b: payload}
	row := traces.Digest{Head: h, Loader: f.u32(), Pass: f.u32(), Worker: f.i32(), Batch: f.u32(), Fetch: f.u32()}
	n, indexed := int64(f.u16()), f.u16() == 1
	var ok bool
	if row.Positions, ok = f.i64s(n); ok && indexed {
		row.Indices, ok = f.i64s(n)
	}
	if !ok || f.short || int64(len(f.b)) != n*(1+2*digestSize) {
		return nil, false
	}
	row.Kinds = slices.Clone(f.take(int(n)))
	row.Contents = slices.Clone(f.take(int(n) * digestSize))
	row.Metas = slices.Clone(f.take(int(n) * digestSize))
	return &row, true
}

func decodeFetch(payload []byte, h traces.Head) (any, bool) {
	f := fields{b: payload}
	row := traces.BatchFetch{Head: h, Loader: f.u32(), Pass: f.u32(), Worker: f.i32(), Batch: f.u32(), Fetch: f.u32(),
		WaitNS: f.i64(), FetchNS: f.i64(), CollateNS: f.i64(), PutNS: f.i64(), Samples: f.i32()}
	return &row, !f.short
}

func decodeNext(payload []byte, h traces.Head) (any, bool) {
	f := fields{b: payload}
	row := traces.BatchNext{Head: h, Loader: f.u32(), Pass: f.u32(), Batch: f.u32(), Worker: f.i32()}
	status := f.u32()
	row.CallNS, row.ArrivedNS, row.Steps, row.Optimizer = f.i64(), f.i64(), f.u64(), f.u32()
	row.Grad = status&gradFlag != 0
	status &^= gradFlag
	if f.short || status >= uint32(len(statuses)) {
		return nil, false
	}
	row.Status = statuses[status]
	return &row, true
}

func decodeState(payload []byte, h traces.Head) (any, bool) {
	f := fields{b: payload}
	row := traces.RngState{Head: h, Slot: f.u32(), Loader: f.u32(), Pass: f.u32(), Worker: f.i32(), Fetch: f.u32()}
	when, idLength := f.u16(), int(f.u16())
	row.Pos, row.DurNS = f.i64(), f.i64()
	if f.short || int(when) >= len(whens) || idLength > len(f.b) {
		return nil, false
	}
	row.When = whens[when]
	// The buffer is used again for the next records.
	row.ID, row.Raw = slices.Clone(f.b[:idLength]), slices.Clone(f.b[idLength:])
	return &row, true
}

package hook

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// The fixed parts of the binary records, and where in them what is no column is.
var (
	putPayload    = payloadOf("put", traces.BatchPut{}, "n")
	fetchPayload  = payloadOf("fetch", traces.BatchFetch{})
	splitPayload  = payloadOf("split", traces.FetchSplit{}, "n")
	nextPayload   = payloadOf("next", traces.BatchNext{}, "status")
	statePayload  = payloadOf("state", traces.RngState{}, "when", "id_length")
	copyPayload   = payloadOf("copy", traces.Copy{}, "function")
	digestPayload = payloadOf("digest", traces.Digest{}, "n", "indexed", "rowed", "names_length")

	copyFunction  = at(copyPayload.Layout, "function", 'I')
	putN          = at(putPayload.Layout, "n", 'i')
	splitN        = at(splitPayload.Layout, "n", 'I')
	nextStatus    = at(nextPayload.Layout, "status", 'I')
	stateWhen     = at(statePayload.Layout, "when", 'H')
	stateIDLength = at(statePayload.Layout, "id_length", 'H')
	digestN       = at(digestPayload.Layout, "n", 'H')
	digestIndexed = at(digestPayload.Layout, "indexed", 'H')
	digestRowed   = at(digestPayload.Layout, "rowed", 'H')
	digestNames   = at(digestPayload.Layout, "names_length", 'H')
)

const (
	maxKeys    = 256
	digestSize = 16
	partSize   = 8
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
	case typeSplit:
		return decodeSplit(rec.payload, h)
	case typeNext:
		return decodeNext(rec.payload, h, rec.thread)
	case typeState:
		return decodeState(rec.payload, h)
	case typeDigest:
		return decodeDigest(rec.payload, h)
	case typeCopy:
		return decodeCopy(rec.payload, h)
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
	if p, is := row.(*traces.Pass); is {
		p.ThreadID = rec.thread
	}
	return row, true
}

// blank is a row of a JSON record whose keys are all missing, that is unknown.
func blank(kind uint16, h traces.Head) any {
	switch kind {
	case typeLoader:
		return &traces.Loader{Head: h, Length: -1, BatchSize: -1, Prefetch: -1, SamplerEpoch: -1, SamplerRank: -1, SamplerReplicas: -1,
			SamplerSeed: -1}
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
	case typeAct:
		return &traces.Act{Head: h}
	case typeContainer:
		return &traces.Container{Head: h, Worker: -1, Cap: -1}
	case typeFootprint:
		return &traces.Footprint{Head: h, Worker: -1, Anon: -1, File: -1, Shm: -1, Swap: -1}
	case typeCallSite:
		return &traces.CallSite{Head: h}
	case typeTransform:
		return &traces.Transform{Head: h, Worker: -1}
	case typePin:
		return &traces.Pin{Head: h}
	case typeBatchBytes:
		return &traces.BatchBytes{Head: h, Worker: -1}
	case typeSearch:
		return &traces.RngSearch{Head: h, Worker: -1}
	}
	return nil
}

func u16(b []byte, at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
func u32(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
func u64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// numbers takes n of them from the front of b, if there are as many.
func numbers(b []byte, n int64) (list []int64, rest []byte, ok bool) {
	if n < 0 || n > int64(len(b)/8) {
		return nil, nil, false
	}
	list = make([]int64, n)
	for i := range list {
		list[i] = int64(u64(b, 8*i))
	}
	return list, b[8*n:], true
}

func decodePut(b []byte, h traces.Head) (any, bool) {
	row := traces.BatchPut{Head: h}
	rest, ok := putPayload.fill(&row, b)
	if !ok {
		return nil, false
	}
	n := int64(int32(u32(b, putN)))
	if n == -1 {
		row.Keys = strings.ToValidUTF8(string(rest[:min(len(rest), maxKeys)]), "")
		return &row, true
	}
	row.Indices, rest, ok = numbers(rest, n)
	if ok && len(rest) > 0 {
		row.IDs, _, ok = numbers(rest, n)
	}
	return &row, ok
}

func decodeDigest(b []byte, h traces.Head) (any, bool) {
	row := traces.Digest{Head: h}
	rest, ok := digestPayload.fill(&row, b)
	if !ok {
		return nil, false
	}
	n := int(u16(b, digestN))
	if row.Positions, rest, ok = numbers(rest, int64(n)); ok && u16(b, digestIndexed) == 1 {
		row.Indices, rest, ok = numbers(rest, int64(n))
	}
	var rowed int
	if u16(b, digestRowed) == 1 {
		rowed = n
	}
	var names []byte
	for _, c := range []struct {
		to   *[]byte
		size int
	}{{&row.Kinds, n}, {&row.Contents, n * digestSize}, {&row.Metas, n * digestSize}, {&row.RowKinds, rowed}, {&row.Rows, rowed * digestSize},
		{&names, int(u16(b, digestNames))}, {&row.Counts, n}} {
		if !ok || len(rest) < c.size {
			return nil, false
		}
		// The buffer is used again for the next records.
		*c.to, rest = slices.Clone(rest[:c.size]), rest[c.size:]
	}
	row.Names = string(names)
	parts := 0
	for _, n := range row.Counts {
		parts += int(n)
	}
	if row.Parts = slices.Clone(rest); len(rest) != parts*partSize {
		return nil, false
	}
	return &row, true
}

func decodeFetch(b []byte, h traces.Head) (any, bool) {
	row := traces.BatchFetch{Head: h}
	_, ok := fetchPayload.fill(&row, b)
	return &row, ok
}

func decodeSplit(b []byte, h traces.Head) (any, bool) {
	row := traces.FetchSplit{Head: h}
	rest, ok := splitPayload.fill(&row, b)
	if !ok {
		return nil, false
	}
	all, rest, ok := numbers(rest, 3*int64(u32(b, splitN)))
	row.Transforms, row.Calls, row.SpentNS = []int64{}, []int64{}, []int64{}
	for i := 0; i+2 < len(all); i += 3 {
		row.Transforms, row.Calls, row.SpentNS = append(row.Transforms, all[i]), append(row.Calls, all[i+1]), append(row.SpentNS, all[i+2])
	}
	return &row, ok && len(rest) == 0
}

func decodeCopy(b []byte, h traces.Head) (any, bool) {
	row := traces.Copy{Head: h, Direction: "to-device", Rows: 1, GapNS: -1, SeenBy: "hook", Device: "other"}
	if _, ok := copyPayload.fill(&row, b); !ok {
		return nil, false
	}
	function := u32(b, copyFunction)
	is := func(name string) bool { return function&layouts.Copied[name] != 0 }
	row.Main, row.Async, row.Capturing = is("main"), is("async"), is("capturing")
	switch {
	case is("pinned"):
		row.Memory = "pinned"
	case is("pageable"):
		row.Memory = "pageable"
	}
	switch {
	case is("cast") && is("strided"):
		row.Made = "cast,strided"
	case is("cast"):
		row.Made = "cast"
	case is("strided"):
		row.Made = "strided"
	}
	if is("cuda") {
		row.Device = "cuda"
	}
	for _, bit := range layouts.Copied {
		function &^= bit
	}
	if function >= uint32(len(layouts.Functions)) {
		return nil, false
	}
	row.Function = layouts.Functions[function]
	return &row, true
}

func decodeNext(b []byte, h traces.Head, thread uint32) (any, bool) {
	row := traces.BatchNext{Head: h, Thread: thread}
	if _, ok := nextPayload.fill(&row, b); !ok {
		return nil, false
	}
	status := u32(b, nextStatus)
	for _, added := range []struct {
		name   string
		column *bool
	}{{"grad", &row.Grad}, {"grad_off", &row.GradOff}, {"evaluating", &row.Evaluating}, {"alone", &row.Alone}, {"watched", &row.Watched}} {
		*added.column = status&layouts.Added[added.name] != 0
		status &^= layouts.Added[added.name]
	}
	if status >= uint32(len(layouts.Statuses)) {
		return nil, false
	}
	row.Status = layouts.Statuses[status]
	return &row, true
}

func decodeState(b []byte, h traces.Head) (any, bool) {
	row := traces.RngState{Head: h}
	rest, ok := statePayload.fill(&row, b)
	if !ok {
		return nil, false
	}
	when, idLength := int(u16(b, stateWhen)), int(u16(b, stateIDLength))
	if when >= len(layouts.Whens) || idLength > len(rest) {
		return nil, false
	}
	row.When = layouts.Whens[when]
	row.ID, row.Raw = slices.Clone(rest[:idLength]), slices.Clone(rest[idLength:])
	return &row, true
}

package hook

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// collector keeps rows, by value.
type collector struct {
	mu   sync.Mutex
	rows []any
}

func (c *collector) Append(row any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, row)
}

func newReader(c *collector) *reader {
	return &reader{Recording: &probe.Recording{Rows: c, Procs: probe.NewProcs(), Target: 7}, rings: map[string]*source{},
		ignored: map[string]bool{}, sources: sources{}}
}

func pack(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// values are of the fields of a layout; the others are 0.
type values map[string]int64

// fixed is the fixed part of a binary payload.
func fixed(record string, of values) []byte {
	layout := layouts.Payloads[record]
	b := make([]byte, layout.Size)
	for _, f := range layout.Fields {
		for i := range f.Size {
			b[f.Offset+i] = byte(of[f.Name] >> (8 * i))
		}
	}
	return b
}

// added is all bits that are added to a status.
func added() (bits int64) {
	for _, bit := range layouts.Added {
		bits |= int64(bit)
	}
	return bits
}

// The records of shim/PROTOCOL.md and the rows that they become.
func TestTake(t *testing.T) {
	python := filepath.Join(t.TempDir(), "data.py")
	if err := os.WriteFile(python, []byte("class D:\n    def __init__(self):\n        self.rng = Random(0)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := traces.Head{TsNS: 5, Proc: 3}
	for _, tc := range []struct {
		name    string
		kind    uint16
		payload []byte
		want    []any
	}{
		{"put", typePut,
			slices.Concat(fixed("put", values{"loader": 1, "pass": 2, "batch": 3, "worker": 1, "dur_ns": 9, "first": 4, "n": 2}),
				pack(int64(70), int64(-1))),
			[]any{&traces.BatchPut{Head: h, Loader: 1, Pass: 2, Batch: 3, Worker: 1, DurNS: 9, First: 4, Indices: []int64{70, -1}}}},
		{"put of keys", typePut, append(fixed("put", values{"loader": 1, "pass": 2, "batch": 3, "worker": -1, "dur_ns": 9, "n": -1}), "a,b"...),
			[]any{&traces.BatchPut{Head: h, Loader: 1, Pass: 2, Batch: 3, Worker: -1, DurNS: 9, Keys: "a,b"}}},
		{"put that claims more than it has", typePut,
			slices.Concat(fixed("put", values{"loader": 1, "pass": 2, "batch": 3, "worker": 1, "dur_ns": 9, "first": 4, "n": 1 << 30}),
				pack(int64(70))), nil},
		{"put cut short", typePut, pack(uint32(1)), nil},
		{"fetch", typeFetch,
			fixed("fetch", values{"pass": 2, "worker": 1, "batch": 4, "fetch": 5, "wait_ns": 6, "fetch_ns": 7, "collate_ns": 8, "put_ns": 9,
				"samples": 10}),
			[]any{&traces.BatchFetch{Head: h, Pass: 2, Worker: 1, Batch: 4, Fetch: 5, WaitNS: 6, FetchNS: 7, CollateNS: 8, PutNS: 9, Samples: 10}}},
		{"split", typeSplit,
			fixed("split", values{"loader": 1, "pass": 2, "worker": -1, "batch": 4, "fetch": 5, "samples": 6, "wall_ns": 70, "cpu_ns": 20,
				"others_ns": 3, "queue_ns": -1, "read_bytes": 9, "reads": 2, "disk_bytes": 4096, "own_ns": 8}),
			[]any{&traces.FetchSplit{Head: h, Loader: 1, Pass: 2, Worker: -1, Batch: 4, Fetch: 5, Samples: 6, WallNS: 70, CPUNS: 20, OthersNS: 3,
				QueueNS: -1, ReadBytes: 9, Reads: 2, DiskBytes: 4096, OwnNS: 8, Transforms: []int64{}, Calls: []int64{}, SpentNS: []int64{}}}},
		{"split with transforms", typeSplit,
			append(fixed("split", values{"worker": 2, "n": 2}), pack(int64(1), int64(8), int64(700), int64(3), int64(9), int64(-1))...),
			[]any{&traces.FetchSplit{Head: h, Worker: 2, Transforms: []int64{1, 3}, Calls: []int64{8, 9}, SpentNS: []int64{700, -1}}}},
		{"split that claims more than it has", typeSplit,
			append(fixed("split", values{"worker": 2, "n": 1 << 31}), pack(int64(1), int64(8), int64(700))...), nil},
		{"split with more than it says", typeSplit, append(fixed("split", values{"worker": 2}), pack(int64(1))...), nil},
		{"container", typeContainer,
			[]byte(`{"loader": 1, "pass": 2, "worker": -1, "served": 90, "path": "losses", "function": "__main__.main", "class": "list", "items": 90,
				"first_items": 4, "first_served": 5, "added_bytes": 6000, "shared_bytes": 0, "graph": true, "cap": -1, "bound": "compares"}`),
			[]any{&traces.Container{Head: h, Loader: 1, Pass: 2, Worker: -1, Served: 90, Path: "losses", Function: "__main__.main", Class: "list",
				Items: 90, FirstItems: 4, FirstServed: 5, AddedBytes: 6000, Graph: true, Cap: -1, Bound: "compares"}}},
		{"footprint", typeFootprint,
			[]byte(`{"loader": 0, "pass": 1, "worker": 3, "served": 7, "when": "end", "anon": 4096, "containers": 12, "cut": "time"}`),
			[]any{&traces.Footprint{Head: h, Pass: 1, Worker: 3, Served: 7, When: "end", Anon: 4096, File: -1, Shm: -1, Swap: -1, Containers: 12,
				Cut: "time"}}},
		{"transform", typeTransform,
			[]byte(`{"loader": 1, "pass": 0, "worker": -1, "transform": 2, "chain": "dataset.transform", "place": 0, "path": "dataset.transform.transforms[0]",
				"class": "data.Crop", "file": "/data.py", "line": 7, "why": ""}`),
			[]any{&traces.Transform{Head: h, Loader: 1, Worker: -1, Transform: 2, Chain: "dataset.transform", Path: "dataset.transform.transforms[0]",
				Class: "data.Crop", File: "/data.py", Line: 7}}},
		{"pin", typePin,
			[]byte(`{"loader": 1, "pass": 0, "batch": 1, "class": "__main__.Batch", "reached": 0, "reached_bytes": 0, "left": 2, "left_bytes": 4096,
				"largest_bytes": 4000, "pinned": 0, "arrays": 0, "array_bytes": 0, "holder": "__main__.Batch", "path": "", "fields": "image,mask[]", "made": "dataclass",
				"unsure": "", "pins": ""}`),
			[]any{&traces.Pin{Head: h, Loader: 1, Batch: 1, Class: "__main__.Batch", Left: 2, LeftBytes: 4096, LargestBytes: 4000, Holder: "__main__.Batch",
				Fields: "image,mask[]", Made: "dataclass"}}},
		{"split cut short", typeSplit, pack(uint32(1)), nil},
		{"next with gradients", typeNext,
			fixed("next", values{"loader": 1, "pass": 2, "batch": 3, "worker": -2, "status": 1 + int64(layouts.Added["grad"]), "call_ns": 6, "arrived_ns": 7,
				"steps": 8, "optimizer": 9, "backwards": 10, "grads_from": 11, "grads_to": 12, "restarts": 13, "rows": -1}),
			[]any{&traces.BatchNext{Head: h, Loader: 1, Pass: 2, Batch: 3, Worker: -2, Status: "ok", CallNS: 6, ArrivedNS: 7, Steps: 8, Optimizer: 9,
				Grad: true, Backwards: 10, GradsFrom: 11, GradsTo: 12, Restarts: 13, Rows: -1}}},
		{"next with all bits", typeNext, fixed("next", values{"status": 3 + added()}),
			[]any{&traces.BatchNext{Head: h, Status: "exit", Grad: true, GradOff: true, Evaluating: true, Alone: true, Watched: true}}},
		{"next of an unknown status", typeNext,
			fixed("next", values{"loader": 1, "pass": 2, "batch": 3, "worker": -2, "status": 4, "call_ns": 6, "arrived_ns": 7, "steps": 8,
				"optimizer": 9}), nil},
		{"state", typeState,
			append(fixed("state", values{"slot": 1, "pass": 2, "worker": 3, "fetch": 4, "when": 3, "id_length": 4, "pos": 624, "dur_ns": 8}),
				"idid-raw"...),
			[]any{&traces.RngState{Head: h, Slot: 1, Pass: 2, Worker: 3, Fetch: 4, When: "after", Pos: 624, DurNS: 8, ID: []byte("idid"),
				Raw: []byte("-raw")}}},
		{"state with an id longer than it", typeState,
			append(fixed("state", values{"slot": 1, "pass": 2, "worker": 3, "fetch": 4, "when": 3, "id_length": 400, "pos": 624, "dur_ns": 8}),
				"idid"...), nil},
		{"state of an unknown moment", typeState,
			fixed("state", values{"slot": 1, "pass": 2, "worker": 3, "fetch": 4, "when": 7, "pos": 624, "dur_ns": 8}), nil},
		{"loader with little known", typeLoader,
			[]byte(`{"loader": 1, "class": "DataLoader", "sampler_seed": 18446744073709551615, "in_order": true, "length": null, "new": [1]}`),
			[]any{&traces.Loader{Head: h, Loader: 1, Class: "DataLoader", InOrder: true, Length: -1, BatchSize: -1, Prefetch: -1, SamplerEpoch: -1,
				SamplerRank: -1, SamplerReplicas: -1, SamplerSeed: -1}}},
		{"numbers that do not fit", typeLoader, []byte(`{"loader": -1, "num_workers": 1e30, "line": 4294967296, "batch_size": "8"}`),
			[]any{&traces.Loader{Head: h, Length: -1, BatchSize: -1, Prefetch: -1, SamplerEpoch: -1, SamplerRank: -1, SamplerReplicas: -1,
				SamplerSeed: -1}}},
		{"group", typeDist, []byte(`{"op": "ddp", "ranks": [0, 1, "x"]}`), []any{&traces.Dist{Head: h, Op: "ddp", Ranks: []int64{0, 1}}}},
		{"worker with what was pickled for it", typeWorker,
			[]byte(`{"phase": "begin", "loader": 1, "pass": 2, "worker": 3, "pid": 4, "pickled_bytes": 305000000, "pickle_ns": 5}`),
			[]any{&traces.Worker{Head: h, Loader: 1, Pass: 2, Worker: 3, Pid: 4, Phase: "begin", PickledBytes: 305000000, PickleNS: 5}}},
		{"extent", typeExtent,
			[]byte(`{"extent": 1, "loader": 2, "pass": 3, "path": "dataset.records", "class": "list", "items": 1000000, "sampled": 12000,
				"starts": [67108863, 70000000], "counts": [150, 1]}`),
			[]any{&traces.Extent{Head: h, Extent: 1, Loader: 2, Pass: 3, Path: "dataset.records", Class: "list", Items: 1000000, Sampled: 12000,
				Starts: []int64{67108863, 70000000}, Counts: []int64{150, 1}}}},
		{"private", typePrivate,
			[]byte(`{"pass": 1, "worker": 2, "fetch": 64, "when": "window", "extent": 0, "parent": 99, "present": 4096, "private": 8192,
				"dur_ns": 7}`),
			[]any{&traces.Private{Head: h, Pass: 1, Worker: 2, Fetch: 64, When: "window", Parent: 99, Present: 4096, Private: 8192, DurNS: 7}}},
		{"digests of a stream", typeDigest,
			append(slices.Concat(fixed("digest", values{"pass": 2, "worker": 1, "batch": 7, "fetch": 3, "n": 2}), pack(int64(32), int64(40))),
				"\x01\x2aAAAAAAAAAAAAAAAABBBBBBBBBBBBBBBBaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb\x00\x01ppppPPPP"...),
			[]any{&traces.Digest{Head: h, Pass: 2, Worker: 1, Batch: 7, Fetch: 3, Positions: []int64{32, 40}, Kinds: []byte{1, 42},
				Contents: []byte("AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB"), Metas: []byte("aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb"),
				Counts: []byte{0, 1}, Parts: []byte("ppppPPPP"), RowKinds: []byte{}, Rows: []byte{}}}},
		{"digest with a row and names", typeDigest,
			append(slices.Concat(fixed("digest", values{"pass": 2, "worker": 1, "batch": 7, "fetch": 3, "n": 1, "rowed": 1, "names_length": 4}),
				pack(int64(32))), "\x01AAAAAAAAAAAAAAAAaaaaaaaaaaaaaaaa\x09rrrrrrrrrrrrrrrrx,id\x02ppppPPPPqqqqQQQQ"...),
			[]any{&traces.Digest{Head: h, Pass: 2, Worker: 1, Batch: 7, Fetch: 3, Positions: []int64{32}, Kinds: []byte{1}, RowKinds: []byte{9},
				Contents: []byte("AAAAAAAAAAAAAAAA"), Metas: []byte("aaaaaaaaaaaaaaaa"), Rows: []byte("rrrrrrrrrrrrrrrr"), Names: "x,id",
				Counts: []byte{2}, Parts: []byte("ppppPPPPqqqqQQQQ")}}},
		{"digest without its parts", typeDigest,
			append(slices.Concat(fixed("digest", values{"pass": 2, "worker": 1, "batch": 7, "fetch": 3, "n": 1}), pack(int64(32))),
				"\x01AAAAAAAAAAAAAAAAaaaaaaaaaaaaaaaa\x01pppp"...), nil},
		{"digest by index", typeDigest,
			append(slices.Concat(fixed("digest", values{"loader": 4, "pass": 2, "worker": -1, "batch": 7, "fetch": 7, "n": 1, "indexed": 1}),
				pack(int64(32), int64(-1))), "\x11AAAAAAAAAAAAAAAAaaaaaaaaaaaaaaaa\x00"...),
			[]any{&traces.Digest{Head: h, Loader: 4, Pass: 2, Worker: -1, Batch: 7, Fetch: 7, Positions: []int64{32}, Indices: []int64{-1},
				Kinds:    []byte{17},
				Contents: []byte("AAAAAAAAAAAAAAAA"), Metas: []byte("aaaaaaaaaaaaaaaa"), Counts: []byte{0}, Parts: []byte{}, RowKinds: []byte{},
				Rows: []byte{}}}},
		{"digest without its metas", typeDigest,
			append(slices.Concat(fixed("digest", values{"pass": 2, "worker": 1, "batch": 7, "fetch": 3, "n": 1}), pack(int64(32))),
				"\x01AAAAAAAAAAAAAAAA"...), nil},
		{"digest with more than it says", typeDigest,
			append(slices.Concat(fixed("digest", values{"pass": 2, "worker": 1, "batch": 7, "fetch": 3, "n": 1}), pack(int64(32))),
				"\x01AAAAAAAAAAAAAAAAaaaaaaaaaaaaaaaa\x00-"...), nil},
		{"digests that claim more than they have", typeDigest,
			slices.Concat(fixed("digest", values{"pass": 2, "worker": 1, "batch": 7, "fetch": 3, "n": 65535, "indexed": 1}), pack(int64(32))), nil},
		{"digest cut short", typeDigest, pack(uint32(0), uint32(2)), nil},
		{"batch_bytes", typeBatchBytes, []byte(`{"pass": 1, "worker": 2, "batch": 5, "fetch": 0, "bytes": 12288, "tensors": 2, ` +
			`"dtypes": "float32=8192,int64=4096", "shared": 0, "whole": true, "sharing": "file_descriptor"}`),
			[]any{&traces.BatchBytes{Head: h, Pass: 1, Worker: 2, Batch: 5, Bytes: 12288, Tensors: 2, Dtypes: "float32=8192,int64=4096",
				Whole: true, Sharing: "file_descriptor"}}},
		{"leftover", typeLeftover,
			[]byte(`{"loader": 0, "pass": 1, "worker": 2, "samples": 3}`), []any{&traces.Leftover{Head: h, Pass: 1, Worker: 2, Samples: 3}}},
		{"copy", typeCopy,
			fixed("copy", values{"bytes": 1 << 20, "source": 0x7f00, "call_ns": 9, "thread": 7, "site": 2, "skipped": 3,
				"function": 1 + int64(layouts.Copied["main"]|layouts.Copied["pageable"]|layouts.Copied["cast"]|layouts.Copied["cuda"])}),
			[]any{&traces.Copy{Head: h, SeenBy: "hook", Thread: 7, Main: true, Function: "Tensor.cuda", Direction: "to-device", Source: 0x7f00,
				Bytes: 1 << 20, Rows: 1, CallNS: 9, GapNS: -1, Site: 2, Skipped: 3, Memory: "pageable", Made: "cast", Device: "cuda"}}},
		{"copy of another device", typeCopy,
			fixed("copy", values{"bytes": 8, "function": 2 + int64(layouts.Copied["async"]|layouts.Copied["pinned"]|layouts.Copied["strided"]|
				layouts.Copied["cast"]|layouts.Copied["capturing"])}),
			[]any{&traces.Copy{Head: h, SeenBy: "hook", Function: "Tensor.copy_", Direction: "to-device", Bytes: 8, Rows: 1, GapNS: -1, Async: true,
				Capturing: true, Memory: "pinned", Made: "cast,strided", Device: "other"}}},
		{"copy by an unknown function", typeCopy, fixed("copy", values{"bytes": 8, "function": 3}), nil},
		{"copy with a bit that is unknown", typeCopy, fixed("copy", values{"bytes": 8, "function": 1 << 20}), nil},
		{"copy cut short", typeCopy, pack(int64(8)), nil},
		{"line that asks for copies", typeCallSite, []byte(`{"site": 2, "frames": "/a/train.py:9 main"}`),
			[]any{&traces.CallSite{Head: h, Site: 2, Frames: "/a/train.py:9 main"}}},
		{"opened", typeOpened, []byte(`{"path": "/data/a.tar"}`), []any{&traces.Opened{Head: h, Path: "/data/a.tar", Source: "fd"}}},
		{"slot with its line", typeSlot,
			[]byte(`{"slot": 2, "path": "dataset.rng", "attr": "rng", "source": "` + python + `", "first": 1, "last": 0}`),
			[]any{traces.RngSlot{Head: h, Slot: 2, Path: "dataset.rng", File: python, Line: 3}}},
		{"errors of ours", typeErrors, []byte(`{"count": 2, "last": "boom", "disabled": true}`),
			[]any{traces.Lost{Head: h, Source: "hook-error", Count: 2, Reason: "boom (the hook has stopped in this process)"}}},
		{"extent that is no JSON", typeExtent, []byte("["), nil},
		{"no JSON", typeLoader, []byte("{"), nil},
		{"JSON but no object", typeSlot, []byte("null"), nil},
		{"of a newer hook", 4000, []byte("anything"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c collector
			d := newReader(&c)
			s := &source{ring: &ring{}, proc: 3}
			d.take(s, record{kind: tc.kind, tsNS: 5, payload: tc.payload})
			if diff := cmp.Diff(tc.want, c.rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			var bad uint64
			if tc.want == nil && tc.kind <= typeCallSite {
				bad = 1
			}
			if s.bad != bad {
				t.Errorf("%d records were counted as undecodable, want %d", s.bad, bad)
			}
		})
	}
}

// A worker is not the recorder's child: only its parent can tell how it ended.
func TestWorkerExit(t *testing.T) {
	var c collector
	d := newReader(&c)
	p, _ := d.Procs.Of(99, 1)
	d.take(&source{ring: &ring{}, proc: 3}, record{kind: typeWorker, tsNS: 5,
		payload: []byte(`{"worker": 1, "pid": 99, "phase": "exit", "exit_code": -9}`)})
	want := traces.Exit{Head: traces.Head{TsNS: 5, Proc: p.Number}, ExitCode: -1, Signal: 9, Source: "exitcode"}
	if len(c.rows) != 2 {
		t.Fatalf("rows: %v", c.rows)
	}
	if diff := cmp.Diff(want, c.rows[1]); diff != "" {
		t.Error(diff)
	}
}

package hook

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/traces"
)

// The records that tell what samples are, what hangs on their dataset and who
// the ranks are.
func TestTakeIdentity(t *testing.T) {
	python := filepath.Join(t.TempDir(), "data.py")
	if err := os.WriteFile(python, []byte("class D:\n    def __init__(self):\n        self.epoch = 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := traces.Head{TsNS: 5, Proc: 3}
	put := slices.Concat(fixed("put", values{"loader": 1, "pass": 2, "batch": 3, "dur_ns": 9, "n": 2}), pack(int64(7), int64(8)))
	for _, tc := range []struct {
		name    string
		kind    uint16
		payload []byte
		want    []any
	}{
		{"put with ids", typePut, slices.Concat(put, pack(int64(1<<40|70), int64(-1))),
			[]any{&traces.BatchPut{Head: h, Loader: 1, Pass: 2, Batch: 3, DurNS: 9, Indices: []int64{7, 8}, IDs: []int64{1<<40 | 70, -1}}}},
		{"put with too few ids", typePut, slices.Concat(put, pack(int64(1<<40|70))), nil},
		{"put with a piece of one", typePut, slices.Concat(put, []byte{1, 2, 3}), nil},
		{"dataset", typeDataset,
			[]byte(`{"dataset": 2, "class": "__main__.Tracks", "length": 10}`),
			[]any{&traces.Dataset{Head: h, Dataset: 2, Class: "__main__.Tracks", Length: 10}}},
		{"dataset of unknown length", typeDataset, []byte(`{"dataset": 2}`), []any{&traces.Dataset{Head: h, Dataset: 2, Length: -1}}},
		{"loader", typeLoader,
			[]byte(`{"loader": 1, "dataset_id": 2, "sampler_id": 3, "samplers": "a > b", "shuffle": "no", "replacement": "yes",
				"sampler_total": 12, "batched": "yes", "len_asked": 9}`),
			[]any{&traces.Loader{Head: h, Loader: 1, Length: -1, BatchSize: -1, Prefetch: -1, SamplerEpoch: -1, SamplerRank: -1, SamplerReplicas: -1,
				SamplerSeed: -1,
				DatasetID:   2, SamplerID: 3, Samplers: "a > b", Shuffle: "no", Replacement: "yes", SamplerTotal: 12, Batched: "yes", LenAsked: 9}}},
		{"end of a pass", typePass, []byte(`{"loader": 1, "pass": 2, "phase": "end", "end": "exhausted", "delivered": 3, "len_asked": 9}`),
			[]any{&traces.Pass{Head: h, Loader: 1, Pass: 2, Phase: "end", SamplerEpoch: -1, End: "exhausted", Delivered: 3, LenAsked: 9}}},
		{"scalar", typeAttribute,
			[]byte(`{"loader": 1, "pass": 2, "worker": -1, "when": "iter", "path": "dataset.epoch", "class": "builtins.int", "value": "3",
				"read": "yes",
			"attr": "epoch", "source": "` + python + `", "first": 1, "last": 3}`),
			[]any{traces.Attribute{Head: h, Loader: 1, Pass: 2, Worker: -1, When: "iter", Path: "dataset.epoch", Class: "builtins.int", Value: "3",
				Read: "yes", File: python, Line: 3}}},
		{"scalar that is gone", typeAttribute,
			[]byte(`{"loader": 0, "pass": 2, "worker": 1, "when": "fetch", "path": "dataset.epoch", "class": "", "value": "", "attr": "",
				"source": "", "first": 0, "last": 0}`),
			[]any{traces.Attribute{Head: h, Pass: 2, Worker: 1, When: "fetch", Path: "dataset.epoch"}}},
		{"container", typeAttribute,
			[]byte(`{"loader": 1, "pass": 0, "worker": -1, "when": "rank", "dataset": 4, "path": "dataset.files", "class": "builtins.list",
				"items": 20, "whole": true,
			"ordered": "0aff", "unordered": ""}`),
			[]any{traces.Attribute{Head: h, Loader: 1, Worker: -1, When: "rank", Dataset: 4, Path: "dataset.files", Class: "builtins.list",
				Items: 20, Whole: true, Ordered: []byte{10, 255}}}},
		{"digest that is none", typeAttribute,
			[]byte(`{"when": "rank", "ordered": "0a f", "unordered": 7}`), []any{traces.Attribute{Head: h, Worker: -1, When: "rank"}}},
		{"set_epoch", typeSetEpoch,
			[]byte(`{"sampler_id": 3, "epoch": 4, "file": "train.py", "line": 7}`),
			[]any{&traces.SetEpoch{Head: h, SamplerID: 3, Epoch: 4, File: "train.py", Line: 7}}},
		{"search", typeSearch,
			[]byte(`{"loader": 1, "pass": 2, "worker": -1, "way": "process", "objects": 90000, "found": 3, "why": "time", "left": 70}`),
			[]any{&traces.RngSearch{Head: h, Loader: 1, Pass: 2, Worker: -1, Way: "process", Objects: 90000, Found: 3, Why: "time", Left: 70}}},
		{"mesh", typeDist,
			[]byte(`{"op": "mesh_dim", "class": "tp", "ranks": [2, 3], "backend": "gloo"}`),
			[]any{&traces.Dist{Head: h, Op: "mesh_dim", Class: "tp", Backend: "gloo", Ranks: []int64{2, 3}}}},
		{"join", typeDist,
			[]byte(`{"op": "join", "class": "", "ranks": [], "backend": "gloo"}`),
			[]any{&traces.Dist{Head: h, Op: "join", Backend: "gloo", Ranks: []int64{}}}},
		{"attribute that is no JSON", typeAttribute, []byte("["), nil},
		{"dataset that is no JSON", typeDataset, []byte("["), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c collector
			s := &source{ring: &ring{}, proc: 3}
			newReader(&c).take(s, record{kind: tc.kind, tsNS: 5, payload: tc.payload})
			if diff := cmp.Diff(tc.want, c.rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if bad := s.bad == 1; bad != (tc.want == nil) {
				t.Errorf("%d records were counted as undecodable", s.bad)
			}
		})
	}
}

package hook

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// The constants are the hook's numbers.
func TestTypes(t *testing.T) {
	names := []string{
		typePad: "pad", typeProcess: "process", typeLoader: "loader", typePass: "pass", typeWorker: "worker", typePut: "put",
		typeFetch: "fetch", typeNext: "next", typeSlot: "slot", typeState: "state", typeOptimizer: "optimizer",
		typeException: "exception", typeDist: "dist", typeErrors: "errors", typeExtent: "extent", typePrivate: "private",
		typeDataset: "dataset", typeAttribute: "attribute", typeDigest: "digest", typeLeftover: "leftover", typeOpened: "opened",
		typeSetEpoch: "set_epoch", typeAct: "act", typeSearch: "search", typeSplit: "split", typeTransform: "transform", typePin: "pin",
		typeBatchBytes: "batch_bytes",
		typeContainer:  "container", typeFootprint: "footprint", typeCopy: "copy", typeCallSite: "call_site",
	}
	if !slices.Equal(names, layouts.Types) {
		t.Errorf("the hook has\n%q, not\n%q", layouts.Types, names)
	}
}

// Each field of a binary record that is not read apart is the column of its
// name, and no other: each has a value of its own here.
func TestFieldsAreColumns(t *testing.T) {
	for name, tc := range map[string]struct {
		kind  uint16
		apart values // what the rest of the payload depends on
		rest  string
	}{
		"put":    {typePut, values{"n": -1}, "keys"},
		"fetch":  {typeFetch, nil, ""},
		"next":   {typeNext, values{"status": 2}, ""},
		"state":  {typeState, values{"when": 6, "id_length": 2}, "id, raw"},
		"copy":   {typeCopy, values{"function": 1}, ""},
		"digest": {typeDigest, values{"n": 0, "indexed": 0, "rowed": 0, "names_length": 0}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			of := values{}
			for i, f := range layouts.Payloads[name].Fields {
				of[f.Name] = int64(1000 + i)
				if v, apart := tc.apart[f.Name]; apart {
					of[f.Name] = v
				}
			}
			row, ok := decode(record{kind: tc.kind, payload: append(fixed(name, of), tc.rest...)}, traces.Head{})
			if !ok {
				t.Fatal("it was not decoded")
			}
			v := reflect.ValueOf(row).Elem()
			for field, want := range of {
				if _, apart := tc.apart[field]; apart {
					continue
				}
				column := v.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, strings.ReplaceAll(field, "_", "")) })
				if !column.IsValid() {
					t.Errorf("%s is no column of %v", field, v.Type())
				} else if got := column.Convert(reflect.TypeFor[int64]()).Int(); got != want {
					t.Errorf("%s: %d, want %d", field, got, want)
				}
			}
		})
	}
}

// A layout that the code does not know must not run at all.
func TestLayoutsOutOfStep(t *testing.T) {
	renamed := func() { payloadOf("fetch", struct{ Loader uint32 }{}) }
	resized := func() { payloadOf("fetch", struct{ Loader int32 }{}) }
	for name, f := range map[string]func(){
		"a field without a column":    renamed,
		"a column of another size":    resized,
		"a payload that is not there": func() { payloadOf("fetched", traces.BatchFetch{}) },
		"a number that is not there":  func() { at(layouts.Header, "foot", 'Q') },
		"a number of another size":    func() { at(layouts.Header, "head", 'I') },
		"one that nobody reads":       func() { payloadOf("put", traces.BatchPut{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			f()
		})
	}
}

func BenchmarkDecodeFetch(b *testing.B) {
	payload := fixed("fetch", values{"pass": 2, "worker": 1, "batch": 4, "fetch": 5, "wait_ns": 6, "samples": 10})
	b.ReportAllocs()
	for b.Loop() {
		decode(record{kind: typeFetch, payload: payload}, traces.Head{})
	}
}

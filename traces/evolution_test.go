package traces

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// exitLater is the table exit of a later version: code is gone to the end,
// source was never written, new columns of all kinds came.
type exitLater struct {
	Head
	Signal int32   `col:"signal"`
	Why    string  `col:"why"`
	Pages  []int64 `col:"pages"`
	Core   []byte  `col:"core"`
	Dumped bool    `col:"dumped"`
	Code   int32   `col:"code"`
}

// writeAs writes rows of T as if T were the struct of the named table.
func writeAs[T any](t *testing.T, dir, table, version string, rows ...T) {
	t.Helper()
	part := filepath.Join(dir, "host-1")
	if err := os.MkdirAll(part, 0o700); err != nil {
		t.Fatal(err)
	}
	def := define[T]()
	def.name = table
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	b := newBuffered(def)
	for i := range rows {
		b.add(unsafe.Pointer(&rows[i]), uint64(i))
	}
	o := Options{create: createFile}
	s, err := openSegment(part, segmentName(table, 0), o,
		enc.schema(def, [][2]string{{"dptrace.table", table}, {"dptrace.schema_version", version}}), time0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.write(enc.batch(b), idxRecord{rows: uint32(b.rows)}), s.close()); err != nil {
		t.Fatal(err)
	}
}

func TestColumnsOfAnotherVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "exit", "1",
		exitLater{Head{TsNS: 5, Proc: 2}, 9, "oom", []int64{1, 2}, []byte{1}, true, -1},
		exitLater{Head{TsNS: 6, Proc: 3}, 0, "", nil, nil, false, 4})
	got, r := readAll(t, dir)
	want := []any{
		Exit{Head{0, 5, 2}, -1, 9, ""},
		Exit{Head{1, 6, 3}, 4, 0, ""},
	}
	if !reflect.DeepEqual(got["exit"], want) || len(r.Problems) > 0 {
		t.Errorf("%+v, %v", got["exit"], r.Problems)
	}
}

func TestUnknownTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "exit", "1", Exit{ExitCode: 3})
	writeAs(t, dir, "cow_faults", "1", Clock{}, Clock{})
	got, r := readAll(t, dir)
	if len(got["exit"]) != 1 || len(r.Problems) != 1 || r.Problems[0].Kind != Newer || r.Problems[0].Table != "cow_faults" || r.Problems[0].LostRows != 2 {
		t.Errorf("%v, %v", got, r.Problems)
	}
}

func TestNewerTrace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "exit", "2", Exit{})
	_, err := Open(dir)
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "schema version 2, this dptrace reads up to 1") {
		t.Error(err)
	}
}

// A column that changed its type is no evolution, not even one of the same
// width: the segment is not read.
func TestRetypedColumn(t *testing.T) {
	type retyped struct {
		Head
		Code uint32 `col:"code"`
	}
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "meta", "1", Meta{})
	writeAs(t, dir, "exit", "1", retyped{Code: 3})
	got, r := readAll(t, dir)
	if len(got["exit"]) != 0 || len(r.Problems) != 1 || r.Problems[0].Kind != Damaged || r.Problems[0].LostRows != 1 {
		t.Errorf("%v, %v", got["exit"], r.Problems)
	}
}

// A stream that arrow-go wrote (padding, frames of its own making, validity
// bitmaps, types that we never write) is read like ours, or refused whole.
func TestForeignWriter(t *testing.T) {
	meta := arrow.NewMetadata([]string{"dptrace.table", "dptrace.schema_version"}, []string{"clock", "1"})
	for _, c := range []struct {
		name  string
		extra arrow.DataType
		codec ipc.Option
		fails bool
	}{
		{"zstd", arrow.PrimitiveTypes.Float64, ipc.WithZstd(), false},
		{"uncompressed", arrow.BinaryTypes.LargeString, nil, false},
		{"lz4", arrow.PrimitiveTypes.Float64, ipc.WithLZ4(), true},
		{"list", arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Uint8)), ipc.WithZstd(), false},
		{"struct", arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8}), ipc.WithZstd(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := arrow.NewSchema([]arrow.Field{
				{Name: "extra", Type: c.extra, Nullable: true},
				{Name: "seq", Type: arrow.PrimitiveTypes.Uint64}, {Name: "ts_ns", Type: arrow.PrimitiveTypes.Int64},
				{Name: "real_ns", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			}, &meta)
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			for i := range 10 {
				b.Field(0).AppendNull()
				b.Field(1).(*array.Uint64Builder).Append(uint64(i))
				b.Field(2).(*array.Int64Builder).Append(int64(i * 5))
				b.Field(3).(*array.Int64Builder).Append(int64(i * 7))
			}
			opts := []ipc.Option{ipc.WithSchema(schema)}
			if c.codec != nil {
				opts = append(opts, c.codec)
			}
			dir := filepath.Join(t.TempDir(), "x.dptrace")
			part := filepath.Join(dir, "host-1")
			os.MkdirAll(part, 0o700)
			writeAs(t, dir, "meta", "1", Meta{})
			split := &messages{}
			w := ipc.NewWriter(split, opts...)
			if err := w.Write(b.NewRecordBatch()); err != nil {
				t.Fatal(err)
			}
			s, err := openSegment(part, segmentName("clock", 0), Options{create: createFile}, split.schema(), time0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.write(split.rest(), idxRecord{rows: 10}), s.close()); err != nil {
				t.Fatal(err)
			}
			got, r := readAll(t, dir)
			if c.fails {
				if len(got["clock"]) != 0 || len(r.Problems) != 1 || r.Problems[0].LostRows != 10 {
					t.Errorf("%v %v", got["clock"], r.Problems)
				}
				return
			}
			if len(r.Problems) > 0 || len(got["clock"]) != 10 || got["clock"][9].(Clock) != (Clock{Head: Head{Seq: 9, TsNS: 45}, RealNS: 63}) {
				t.Errorf("%+v %v", got["clock"], r.Problems)
			}
		})
	}
}

// A batch whose rows are numbered otherwise than the index says is refused:
// evidence refers to rows by number.
func TestNumbersDisagree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "exit", "1", Exit{ExitCode: 3})
	idx := filepath.Join(dir, "host-1", "exit.0000.idx")
	b, err := os.ReadFile(idx)
	if err != nil {
		t.Fatal(err)
	}
	rec, _ := parseIdx(b[idxSize:])
	rec.seq = 5
	if err := os.WriteFile(idx, rec.append(b[:idxSize]), 0o600); err != nil {
		t.Fatal(err)
	}
	got, r := readAll(t, dir)
	if len(got["exit"]) != 0 || len(r.Problems) != 1 || r.Problems[0].Kind != Damaged {
		t.Errorf("%v %v", got, r.Problems)
	}
}

// Nulls are never written; a column that says it has some is refused, not
// read as zeros.
func TestNullsAreRefused(t *testing.T) {
	def := tableOfName["exit"]
	schema, batch := fuzzSeed(t, def, 3)
	s, _, err := parseSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	b, err := parseBatch(batch, s)
	if err != nil {
		t.Fatal(err)
	}
	b.nodes[3].b = 1
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.close()
	if _, _, err := dec.rows(def, s, b); err == nil || !strings.Contains(err.Error(), "nulls") {
		t.Error(err)
	}
}

package traces

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"
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
	Code   int32   `col:"exit_code"`
}

var thisVersion = itoa(SchemaVersion)

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
	root, err := os.OpenRoot(part)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	o := Options{create: func(name string) (file, error) { return createFile(root, filepath.Base(name)) }}
	s, err := openSegment(root, part, segmentName(table, 0), o,
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
	writeAs(t, dir, "exit", thisVersion,
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
	writeAs(t, dir, "exit", thisVersion, Exit{ExitCode: 3})
	writeAs(t, dir, "cow_faults", thisVersion, Clock{}, Clock{})
	got, r := readAll(t, dir)
	if len(got["exit"]) != 1 || len(r.Problems) != 1 {
		t.Fatalf("%v, %v", got, r.Problems)
	}
	if p := r.Problems[0]; p.Kind != Newer || p.Table != "cow_faults" || p.LostRows != 2 {
		t.Errorf("%v, %v", got, r.Problems)
	}
}

func TestNewerTrace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "exit", "3", Exit{})
	_, err := Open(dir)
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "schema version 3, this dptrace reads up to 2") {
		t.Error(err)
	}
}

// Version 1 has other names for some columns: they would be zeros. Such a trace
// is refused, also where not all of it is of that version.
func TestOlderTrace(t *testing.T) {
	type exitOnce struct {
		Head
		Code int32 `col:"code"`
	}
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "exit", "1", exitOnce{Code: 3})
	writeAs(t, dir, "meta", thisVersion, Meta{Key: "version", Value: "devel"})
	_, err := Open(dir)
	if !errors.Is(err, ErrOlder) || !strings.Contains(err.Error(), "exit.0000.arrows: schema version 1, this dptrace reads from 2 on") ||
		!strings.Contains(err.Error(), "record the run anew") {
		t.Error(err)
	}
}

// A column that changed its type is no evolution, not even one of the same
// width: the segment is not read.
func TestRetypedColumn(t *testing.T) {
	type retyped struct {
		Head
		Code uint32 `col:"exit_code"`
	}
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "meta", thisVersion, Meta{})
	writeAs(t, dir, "exit", thisVersion, retyped{Code: 3})
	got, r := readAll(t, dir)
	if len(got["exit"]) != 0 || len(r.Problems) != 1 || r.Problems[0].Kind != Damaged || r.Problems[0].LostRows != 1 {
		t.Errorf("%v, %v", got["exit"], r.Problems)
	}
}

// A batch whose rows are numbered otherwise than the index says is refused:
// evidence refers to rows by number.
func TestNumbersDisagree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "exit", thisVersion, Exit{ExitCode: 3})
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

package conformance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/dptrace/dptrace/traces"
)

// rows has a row of each table.
var rows = []any{
	traces.Process{}, traces.Exit{}, traces.Act{}, traces.Loader{}, traces.Pass{}, traces.Worker{},
	traces.BatchPut{}, traces.BatchFetch{}, traces.FetchSplit{}, traces.Transform{}, traces.Pin{}, traces.BatchNext{},
	traces.Dataset{}, traces.Attribute{}, traces.Digest{}, traces.Leftover{}, traces.Opened{}, traces.BatchBytes{}, traces.SetEpoch{},
	traces.RngSlot{}, traces.RngState{}, traces.RngSearch{}, traces.Optimizer{}, traces.Exception{}, traces.Dist{},
	traces.Memory{}, traces.Cpu{}, traces.Limit{}, traces.Signal{}, traces.Oom{}, traces.Cow{}, traces.Extent{}, traces.Private{},
	traces.ShmRoom{}, traces.ShmFile{}, traces.ShmUse{}, traces.ShmFull{},
	traces.Position{}, traces.OffCpu{}, traces.Descriptor{},
	traces.Container{}, traces.Footprint{},
	traces.CudaLibrary{}, traces.HostMemory{}, traces.Copy{}, traces.CudaCalls{}, traces.CallSite{}, traces.Touch{},
	traces.Host{}, traces.Clock{}, traces.Meta{}, traces.Lost{}, traces.Overhead{},
}

const perTable, perBatch = 300, 100

// sample is row i of a table, with empty, long, negative and non-ASCII values.
func sample(row any, i int) reflect.Value {
	v := reflect.New(reflect.TypeOf(row)).Elem()
	fill(v, i)
	v.FieldByName("Seq").SetUint(uint64(i))
	return v
}

func fill(v reflect.Value, i int) {
	for f := range v.NumField() {
		x, n := v.Field(f), i+f
		switch x.Kind() {
		case reflect.Struct:
			fill(x, i+f)
		case reflect.Int32, reflect.Int64:
			x.SetInt(int64(n*(1-2*(n%2))) - 1)
		case reflect.Uint32, reflect.Uint64:
			x.SetUint(uint64(n * 3))
		case reflect.Bool:
			x.SetBool(n%3 == 0)
		case reflect.String:
			x.SetString([]string{"", "a", fmt.Sprintf("größe %d ✓", n), "long " + strings.Repeat("x", n%700)}[n%4])
		case reflect.Slice:
			x.Set(reflect.MakeSlice(x.Type(), n%40, n%40))
			for j := range x.Len() {
				if e := x.Index(j); e.CanUint() {
					e.SetUint(uint64(n*j) % 256)
				} else {
					e.SetInt(int64(n*j) - 100)
				}
			}
		}
	}
}

// texts are the values of a row by column.
func texts(v reflect.Value, into map[string]string) {
	for i := range v.NumField() {
		f := v.Field(i)
		if v.Type().Field(i).Anonymous {
			texts(f, into)
			continue
		}
		format := "%v"
		if _, ok := f.Interface().([]byte); ok {
			format = "%x"
		}
		into[v.Type().Field(i).Tag.Get("col")] = fmt.Sprintf(format, f.Interface())
	}
}

// TestArrowReadsOurStreams: every column of every table, by name, type and
// value, as FORMAT.md has them.
func TestArrowReadsOurStreams(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sample.dptrace")
	w, err := traces.Create(dir, "host-1", traces.Options{RunID: "run", BootID: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for i := range perTable {
			w.Append(sample(row, i).Interface())
			if i%perBatch == perBatch-1 {
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if tables := traces.Tables(); len(tables) != len(rows) {
		t.Fatalf("%d tables, rows of %d", len(tables), len(rows))
	}
	for i, table := range traces.Tables() {
		if name := strings.ReplaceAll(table.Name, "_", ""); !strings.EqualFold(name, reflect.TypeOf(rows[i]).Name()) {
			t.Fatalf("table %s, row %T", table.Name, rows[i])
		}
		t.Run(table.Name, func(t *testing.T) {
			readByArrow(t, filepath.Join(dir, "host-1", table.Name+".0000.arrows"), table, rows[i])
		})
	}
}

func readByArrow(t *testing.T, file string, table traces.TableInfo, row any) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := r.Schema().Metadata().GetValue("dptrace.table"); v != table.Name {
		t.Errorf("metadata %v", r.Schema().Metadata())
	}
	n := 0
	for r.Next() {
		rec := r.RecordBatch()
		if rec.NumCols() != int64(len(table.Columns)) || rec.NumRows() != perBatch {
			t.Fatalf("%d columns of %d, %d rows", rec.NumCols(), len(table.Columns), rec.NumRows())
		}
		for c, col := range table.Columns {
			if got := rec.Schema().Field(c); got.Name != col.Name || typeName(got.Type) != col.Type || got.Nullable {
				t.Fatalf("column %v, want %+v", got, col)
			}
		}
		for i := range perBatch {
			want := map[string]string{}
			texts(sample(row, n+i), want)
			for c, col := range table.Columns {
				if got := text(rec.Column(c), i); got != want[col.Name] {
					t.Fatalf("%s of row %d: arrow-go reads %s, written %s", col.Name, n+i, got, want[col.Name])
				}
			}
		}
		n += perBatch
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) || n != perTable {
		t.Errorf("%d rows, %v", n, err)
	}
}

// typeName is a type as FORMAT.md calls it.
func typeName(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.StringType:
		return "string"
	case *arrow.ListType:
		return "list<item: " + t.Elem().Name() + ">"
	}
	return t.Name()
}

func text(a arrow.Array, i int) string {
	switch a := a.(type) {
	case *array.Int32:
		return fmt.Sprint(a.Value(i))
	case *array.Uint32:
		return fmt.Sprint(a.Value(i))
	case *array.Int64:
		return fmt.Sprint(a.Value(i))
	case *array.Uint64:
		return fmt.Sprint(a.Value(i))
	case *array.Boolean:
		return fmt.Sprint(a.Value(i))
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return fmt.Sprintf("%x", a.Value(i))
	case *array.List:
		from, to := a.ValueOffsets(i)
		return fmt.Sprint(a.ListValues().(*array.Int64).Int64Values()[from:to])
	}
	return fmt.Sprintf("unknown array %T", a)
}

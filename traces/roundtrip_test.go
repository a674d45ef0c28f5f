package traces

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/google/go-cmp/cmp"
)

// sampleRow is row i of table t: every column has a value that depends on its
// name and on i, with empty, long, negative and non-ASCII ones among them.
func sampleRow(t *table, i int) any {
	row := reflect.New(t.typ).Elem()
	fillSample(row, i, 0)
	head := row.Field(0).Addr().Interface().(*Head)
	head.Seq, head.TsNS = uint64(i), int64(1_000_000*i+7)
	return row.Interface()
}

func fillSample(v reflect.Value, i, salt int) {
	for f := range v.NumField() {
		x, n := v.Field(f), i+f+salt
		switch x.Kind() {
		case reflect.Struct:
			fillSample(x, i, f)
		case reflect.Int32, reflect.Int64:
			x.SetInt(int64(n*(1-2*(n%2))) - 1)
		case reflect.Uint32, reflect.Uint64:
			x.SetUint(uint64(n * 3))
		case reflect.Bool:
			x.SetBool(n%3 == 0)
		case reflect.String:
			x.SetString([]string{"", "a", fmt.Sprintf("größe %d ✓", n), "long " + string(bytes.Repeat([]byte{'x'}, n%700))}[n%4])
		case reflect.Slice:
			if n%3 == 0 {
				continue // nil
			}
			x.Set(reflect.MakeSlice(x.Type(), n%40, n%40))
			for j := range x.Len() {
				if x.Type().Elem().Kind() == reflect.Uint8 {
					x.Index(j).SetUint(uint64(n*j) % 256)
				} else {
					x.Index(j).SetInt(int64(n*j) - 100)
				}
			}
			if x.Len() == 0 {
				x.SetZero()
			}
		}
	}
}

// sampleTrace writes n sample rows of each of the given tables (all, if none
// is named), flushes every per rows, seals, and returns the folder.
func sampleTrace(t testing.TB, n, per int, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sample.dptrace")
	w, err := Create(dir, "host-1", Options{RunID: "run", BootID: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range tables {
		if len(names) > 0 && !contains(names, def.name) {
			continue
		}
		for i := range n {
			w.Append(sampleRow(def, i))
			if i%per == per-1 {
				w.Flush()
			}
		}
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// readAll reads all tables: rows by table, each as any.
func readAll(t testing.TB, dir string) (map[string][]any, *Run) {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]any{}
	if err := r.Each(nil, func(b Batch) error {
		v := reflect.ValueOf(b.Rows)
		for i := range v.Len() {
			got[b.Table] = append(got[b.Table], v.Index(i).Interface())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return got, r
}

func TestRoundTrip(t *testing.T) {
	for _, c := range []struct{ rows, per int }{{1, 1}, {9, 4}, {1000, 1000}, {9001, 9001}} {
		t.Run(fmt.Sprint(c.rows), func(t *testing.T) {
			got, r := readAll(t, sampleTrace(t, c.rows, c.per))
			for _, p := range r.Problems {
				t.Error(p)
			}
			if !r.Parts[0].Sealed || r.Parts[0].RunID != "run" || r.Parts[0].BootID != "boot" {
				t.Errorf("part %+v", r.Parts[0])
			}
			for _, def := range tables {
				rows := got[def.name]
				if def.name == "meta" { // Seal's two
					rows = rows[:len(rows)-2]
				}
				if len(rows) != c.rows {
					t.Fatalf("%s: %d rows, want %d", def.name, len(rows), c.rows)
				}
				for i, row := range rows {
					if want := sampleRow(def, i); !reflect.DeepEqual(row, want) {
						t.Fatalf("%s row %d: %s", def.name, i, cmp.Diff(want, row))
					}
				}
			}
		})
	}
}

// What we write is read by arrow-go, which shares no code with it.
func TestArrowReadsOurStreams(t *testing.T) {
	dir := sampleTrace(t, 300, 100)
	for _, def := range tables {
		f, err := os.Open(filepath.Join(dir, "host-1", def.name+".0000.arrows"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := ipc.NewReader(f)
		if err != nil {
			t.Fatalf("%s: %v", def.name, err)
		}
		if v, _ := r.Schema().Metadata().GetValue("dptrace.table"); v != def.name {
			t.Errorf("%s: metadata %v", def.name, r.Schema().Metadata())
		}
		n := 0
		for r.Next() {
			rec := r.RecordBatch()
			for c, col := range def.columns {
				if got := rec.Schema().Field(c); got.Name != col.name || got.Nullable {
					t.Fatalf("%s: column %v, want %s", def.name, got, col.name)
				}
				for i := range int(rec.NumRows()) {
					want := fieldText(sampleRow(def, n+i), col)
					if got := arrowText(rec.Column(c), i); got != want && def.name != "meta" {
						t.Fatalf("%s.%s row %d: arrow-go reads %s, written %s", def.name, col.name, n+i, got, want)
					}
				}
			}
			n += int(rec.NumRows())
		}
		if err := r.Err(); err != nil && !errors.Is(err, io.EOF) || n < 300 {
			t.Errorf("%s: %d rows, %v", def.name, n, err)
		}
	}
}

func fieldText(row any, c column) string {
	v := reflect.ValueOf(row)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous && f.Type.NumField() > 0 {
			for j := range f.Type.NumField() {
				if f.Type.Field(j).Tag.Get("col") == c.name {
					return fmt.Sprint(v.Field(i).Field(j).Interface())
				}
			}
		} else if f.Tag.Get("col") == c.name {
			if b, ok := v.Field(i).Interface().([]byte); ok {
				return fmt.Sprintf("%x", b)
			}
			return fmt.Sprint(v.Field(i).Interface())
		}
	}
	return "no column " + c.name
}

func arrowText(a arrow.Array, i int) string {
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

func itoa(n int) string { return strconv.Itoa(n) }

package traces

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var time0 = time.Unix(0, 0)

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

func itoa(n int) string { return strconv.Itoa(n) }

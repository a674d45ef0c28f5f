package traces

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
)

// boundedMemory is what reading a trace of a few rows may allocate in all,
// whatever the size of its files. Each table costs a zstd decoder.
const boundedMemory = 8 << 20

// readBounded reads all of a trace and reports the problems of exit.
func readBounded(t *testing.T, dir string) (rows int, problems []Problem) {
	t.Helper()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	allocated := func() uint64 { metrics.Read(sample); return sample[0].Value.Uint64() }
	before := allocated()
	got, r := readAll(t, dir)
	if used := allocated() - before; used > boundedMemory {
		t.Errorf("%d MB allocated", used>>20)
	}
	for _, p := range r.Problems {
		if p.Table == "exit" {
			problems = append(problems, p)
		}
	}
	return len(got["exit"]), problems
}

// An index of 100 MB that holds nothing, as a file with a hole does, costs next
// to nothing, and is one problem: whether the stream has a hole too or not.
func TestSparseIndex(t *testing.T) {
	const records = 100 << 20 / idxSize
	for _, hole := range []bool{false, true} {
		t.Run(fmt.Sprintf("the stream has a hole too %v", hole), func(t *testing.T) {
			dir, data, idx, want := tinyTrace(t)
			info, err := os.Stat(data)
			if err != nil {
				t.Fatal(err)
			}
			places := info.Size()/minMessageBytes + 1 // then it is read no further
			if hole {
				places = records - 2
				err = os.Truncate(data, 100<<30)
			}
			// The schema and one batch of three rows stay.
			if err := errors.Join(err, os.Truncate(idx, 2*idxSize), os.Truncate(idx, records*idxSize)); err != nil {
				t.Fatal(err)
			}
			rows, problems := readBounded(t, dir)
			if rows != 3 || len(problems) != 1 {
				t.Fatalf("%d rows, %d problems, the first %v", rows, len(problems), problems[:min(len(problems), 3)])
			}
			p := problems[0]
			if p.Kind != Damaged || p.Offset != 2*idxSize || p.Places != places || p.LostRows != int64(len(want)-rows) {
				t.Errorf("%v, %d places, want %d", p, p.Places, places)
			}
			if text := fmt.Sprintf(", and at %d more places; 4 rows lost", places-1); !strings.HasSuffix(p.String(), text) {
				t.Error(p)
			}
		})
	}
}

// A hundred thousand records that are right by themselves and name messages that
// are damaged are one problem as well, and their rows are counted.
func TestManyDamagedMessages(t *testing.T) {
	const n = 100_000
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "exit", thisVersion, Exit{ExitCode: 3})
	part := filepath.Join(dir, "host-1")
	idx, err := os.ReadFile(filepath.Join(part, "exit.0000.idx"))
	if err != nil {
		t.Fatal(err)
	}
	last, _ := parseIdx(idx[idxSize:])
	var more bytes.Buffer
	more.Write(idx)
	for i := range uint64(n) {
		more.Write(idxRecord{offset: last.end() + 8*i, length: 8, rows: 2, seq: 1 + 2*i}.append(nil))
	}
	if err := os.WriteFile(filepath.Join(part, "exit.0000.idx"), more.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(part, "exit.0000.arrows"), int64(last.end()+8*n)); err != nil {
		t.Fatal(err)
	}
	rows, problems := readBounded(t, dir)
	if rows != 1 || len(problems) != 1 || problems[0].Places != n || problems[0].LostRows != 2*n {
		t.Errorf("%d rows, %d problems, the first %v", rows, len(problems), problems[:min(len(problems), 1)])
	}
}

// A table that was read in part, and then whole, has the account of the second
// reading; reading it in part once more takes nothing back.
func TestProblemsOfTheWholeReading(t *testing.T) {
	dir := sampleTrace(t, 9, 1, "exit")
	idx := filepath.Join(dir, "host-1", "exit.0000.idx")
	f, err := os.OpenFile(idx, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []int64{2, 5, 6} {
		if _, err := f.WriteAt([]byte("damaged"), record*idxSize); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		rows         int
		places, lost int64
	}{{3, 1, 1}, {9, 3, 3}, {3, 3, 3}} {
		n := 0
		for range Rows[Exit](r) {
			if n++; n == c.rows {
				break
			}
		}
		if len(r.Problems) != 1 || r.Problems[0].Places != c.places || r.Problems[0].LostRows != c.lost {
			t.Errorf("reading %d: %v, want %+v", i+1, r.Problems, c)
		}
	}
}

// A row of the shape of one pointer lies in an interface itself, where rowOf
// would take it for its address: such a row is no table.
func TestRowsAreNoPointers(t *testing.T) {
	type pointer struct{ P *int }
	type late struct {
		N int64
		Head
	}
	for what, define := range map[string]func(){"one pointer": func() { define[pointer]() }, "Head is not first": func() { define[late]() }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: is taken for a row", what)
				}
			}()
			define()
		}()
	}
	for _, def := range tables {
		row := sampleRow(def, 5)
		if (*Head)(rowOf(row)).Seq != 5 || (*Head)(rowOf(row)).TsNS != 5_000_007 {
			t.Errorf("%s: %+v", def.name, *(*Head)(rowOf(row)))
		}
	}
}

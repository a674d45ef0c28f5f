package traces

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// tinyTrace is small enough to damage each of its bits: 7 rows of exit in
// batches of 3, 3 and 1, sealed.
func tinyTrace(t testing.TB) (dir, data, idx string, want []any) {
	dir = sampleTrace(t, 7, 3, "exit")
	for i := range 7 {
		want = append(want, sampleRow(tableOfName["exit"], i))
	}
	part := filepath.Join(dir, "host-1")
	return dir, filepath.Join(part, "exit.0000.arrows"), filepath.Join(part, "exit.0000.idx"), want
}

// checkDamaged reads a damaged tinyTrace. Whatever is read must be rows that
// were written, and what is not read must be said, with its exact number:
// Seal wrote down how many there are. It reports what happened.
func checkDamaged(t *testing.T, what, dir string, want []any) (outcome string) {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatalf("%s: the meta table is whole, but: %v", what, err)
	}
	var got []any
	if err := r.Each([]string{"exit"}, func(b Batch) error {
		for _, row := range b.Rows.([]Exit) {
			got = append(got, row)
		}
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	last := -1
	for _, row := range got {
		seq := int(row.(Exit).Seq)
		if seq <= last || seq >= len(want) || !reflect.DeepEqual(row, want[seq]) {
			t.Fatalf("%s: silently different: row %+v after %d", what, row, last)
		}
		last = seq
	}
	var lost int64
	for _, p := range r.Problems {
		lost += p.LostRows
		if p.LostRows < 0 || p.Text == "" || p.String() == "" {
			t.Fatalf("%s: %+v", what, p)
		}
	}
	if missing := int64(len(want) - len(got)); lost != missing {
		t.Fatalf("%s: %d rows missing, problems count %d: %v", what, missing, lost, r.Problems)
	}
	switch {
	case len(r.Problems) > 0 && len(got) < len(want):
		return "detected"
	case len(r.Problems) > 0:
		return "detected, nothing lost"
	}
	return "harmless"
}

func TestEveryFlippedBit(t *testing.T) {
	dir, data, idx, want := tinyTrace(t)
	for _, file := range []string{data, idx} {
		outcomes := map[string]int{}
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 8 * len(whole) {
			f.WriteAt([]byte{whole[bit/8] ^ 1<<(bit%8)}, int64(bit/8))
			outcomes[checkDamaged(t, filepath.Base(file)+" bit "+itoa(bit), dir, want)]++
			f.WriteAt(whole[bit/8:bit/8+1], int64(bit/8))
		}
		f.Close()
		t.Logf("%s, %d bits: %v", filepath.Base(file), 8*len(whole), outcomes)
		if outcomes["harmless"] > 0 {
			t.Errorf("%d flips of %s were not noticed", outcomes["harmless"], filepath.Base(file))
		}
	}
}

func TestEveryTruncation(t *testing.T) {
	dir, data, idx, want := tinyTrace(t)
	for _, file := range []string{data, idx} {
		outcomes := map[string]int{}
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for size := len(whole) - 1; size >= 0; size-- {
			if err := os.Truncate(file, int64(size)); err != nil {
				t.Fatal(err)
			}
			outcomes[checkDamaged(t, filepath.Base(file)+" cut to "+itoa(size), dir, want)]++
		}
		t.Logf("%s: %v", filepath.Base(file), outcomes)
		os.WriteFile(file, whole, 0o600)
	}
}

// Both files cut together, as after a crash, at every byte of the index.
func TestTruncationOfBoth(t *testing.T) {
	dir, data, idx, want := tinyTrace(t)
	whole, _ := os.ReadFile(idx)
	for size := len(whole) - 1; size >= 0; size-- {
		os.Truncate(idx, int64(size))
		if size%idxSize == 0 && size > 0 {
			r, _ := parseIdx(whole[size-idxSize:])
			os.Truncate(data, int64(r.end()))
		}
		if got := checkDamaged(t, "both cut to "+itoa(size), dir, want); got == "harmless" {
			t.Errorf("both cut to %d: not noticed", size)
		}
	}
}

func TestMissingFiles(t *testing.T) {
	for _, name := range []string{"exit.0000.arrows", "exit.0000.idx"} {
		dir, _, _, want := tinyTrace(t)
		os.Remove(filepath.Join(dir, "host-1", name))
		if got := checkDamaged(t, "without "+name, dir, want); got != "detected" {
			t.Errorf("without %s: %s", name, got)
		}
	}
	dir, data, idx, want := tinyTrace(t)
	os.Remove(data)
	os.Remove(idx)
	if got := checkDamaged(t, "without both", dir, want); got != "detected" {
		t.Errorf("without both: %s", got)
	}
}

// A recording that was killed has no seal: the tail of a batch is torn, an
// unknown number of rows is lost, and that is said.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	w, err := Create(dir, "host-1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		w.Append(Exit{Head: Head{TsNS: int64(i)}, ExitCode: int32(i)})
	}
	w.Flush()
	w.Append(Exit{})
	f, err := os.OpenFile(filepath.Join(w.Dir(), "exit.0000.arrows"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("half of a message")
	f.Close()
	got, r := readAll(t, dir)
	if len(got["exit"]) != 5 || r.Parts[0].Sealed || len(r.Problems) != 1 || r.Problems[0].Kind != Torn || r.Problems[0].LostRows != -1 {
		t.Errorf("%d rows, %v", len(got["exit"]), r.Problems)
	}
}

func TestOpenErrors(t *testing.T) {
	tmp := t.TempDir()
	file := filepath.Join(tmp, "file")
	os.WriteFile(file, []byte("x"), 0o600)
	os.MkdirAll(filepath.Join(tmp, "empty.dptrace"), 0o700)
	os.MkdirAll(filepath.Join(tmp, "emptypart.dptrace", "host-1"), 0o700)
	os.MkdirAll(filepath.Join(tmp, "photos"), 0o700)
	os.WriteFile(filepath.Join(tmp, "photos", "a.jpg"), []byte("x"), 0o600)
	garbage := filepath.Join(tmp, "garbage.dptrace", "host-1")
	os.MkdirAll(garbage, 0o700)
	os.WriteFile(filepath.Join(garbage, "exit.0000.arrows"), []byte("garbage"), 0o600)
	os.WriteFile(filepath.Join(garbage, "exit.0000.idx"), make([]byte, 3*idxSize), 0o600)
	for path, want := range map[string]error{
		file: ErrNotATrace, filepath.Join(tmp, "photos"): ErrNotATrace,
		filepath.Join(tmp, "empty.dptrace"): ErrEmpty, filepath.Join(tmp, "emptypart.dptrace"): ErrEmpty,
		filepath.Join(tmp, "garbage.dptrace"): ErrUnreadable, filepath.Join(tmp, "none"): os.ErrNotExist,
	} {
		if _, err := Open(path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", filepath.Base(path), err, want)
		} else {
			t.Log(err)
		}
	}
}

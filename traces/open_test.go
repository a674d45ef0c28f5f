package traces

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"testing/fstest"
)

// archived is a folder as a zip, its entries compressed or not.
func archived(t *testing.T, dir string, method uint16) *zip.Reader {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			_, err = f.Write(content)
		}
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readFS(t *testing.T, fsys fs.FS, names ...string) (rows []Exit, r *Run) {
	t.Helper()
	r, err := OpenFS(fsys, names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range Rows[Exit](r) {
		rows = append(rows, row)
	}
	return rows, r
}

// A trace is read the same from a folder, from an archive that holds it or in
// which it is one of several folders, and from memory. Damage is found in each.
func TestOpenFS(t *testing.T) {
	dir, data, idx, _ := tinyTrace(t)
	for _, harm := range []func(){
		func() {},
		func() { // the checksum of the second of three batches, and what follows is read on
			b, _ := os.ReadFile(idx)
			r, _ := parseIdx(b[2*idxSize:])
			f, _ := os.OpenFile(data, os.O_WRONLY, 0)
			f.WriteAt([]byte("damaged"), int64(r.offset)+40)
			f.Close()
		},
		func() { // the index of the second
			f, _ := os.OpenFile(idx, os.O_WRONLY, 0)
			f.WriteAt([]byte("damaged"), 2*idxSize)
			f.Close()
		},
		func() { os.Truncate(data, 700) },
	} {
		harm()
		wantRows, want := readFS(t, os.DirFS(dir), ".")
		files := fstest.MapFS{}
		for _, name := range []string{"exit.0000.arrows", "exit.0000.idx", "meta.0000.arrows", "meta.0000.idx"} {
			b, err := os.ReadFile(filepath.Join(dir, "host-1", name))
			if err != nil {
				t.Fatal(err)
			}
			files["a/b.dptrace/host-1/"+name] = &fstest.MapFile{Data: b}
		}
		for what, got := range map[string]func() ([]Exit, *Run){
			"stored":   func() ([]Exit, *Run) { return readFS(t, archived(t, dir, zip.Store), ".") },
			"deflated": func() ([]Exit, *Run) { return readFS(t, archived(t, dir, zip.Deflate), ".") },
			"twice":    func() ([]Exit, *Run) { return readFS(t, archived(t, dir, zip.Store), ".", ".") },
			"one of several": func() ([]Exit, *Run) {
				return readFS(t, archived(t, filepath.Dir(dir), zip.Deflate), filepath.Base(dir))
			},
			"memory": func() ([]Exit, *Run) { return readFS(t, files, "a/b.dptrace") },
			"path": func() ([]Exit, *Run) {
				_, r := readAll(t, dir)
				rows, _ := readFS(t, os.DirFS(dir), ".")
				return rows, r
			},
		} {
			rows, r := got()
			if !reflect.DeepEqual(rows, wantRows) {
				t.Errorf("%s: %+v, want %+v", what, rows, wantRows)
			}
			if len(r.Parts) != 1 || !r.Parts[0].Sealed || r.Parts[0].Name != "host-1" || len(r.Problems) != len(want.Problems) {
				t.Fatalf("%s: %+v, %v", what, r.Parts, r.Problems)
			}
			for i, p := range r.Problems {
				if p.Part = want.Problems[i].Part; p != want.Problems[i] {
					t.Errorf("%s: %v, want %v", what, p, want.Problems[i])
				}
			}
		}
	}
}

// What is no folder is no part, and what is no file is no segment: links out of
// the trace are not followed, pipes are not waited for, and a name that no file
// system of Go's can hold is passed over.
func TestOnlyFilesOfTheTrace(t *testing.T) {
	dir, _, _, want := tinyTrace(t)
	other := sampleTrace(t, 3, 3, "clock")
	part := filepath.Join(dir, "host-1")
	for _, err := range []error{
		os.Symlink(filepath.Join(other, "host-1"), filepath.Join(dir, "host-2")),
		os.Symlink(filepath.Join(other, "host-1", "clock.0000.arrows"), filepath.Join(part, "clock.0000.arrows")),
		os.Symlink(filepath.Join(other, "host-1", "clock.0000.idx"), filepath.Join(part, "clock.0000.idx")),
		syscall.Mkfifo(filepath.Join(part, "exit.0001.arrows"), 0o600),
		syscall.Mkfifo(filepath.Join(part, "exit.0001.idx"), 0o600),
		os.Mkdir(filepath.Join(part, "exit.0002.arrows"), 0o700),
		os.Mkdir(filepath.Join(dir, "no \xff UTF-8"), 0o700),
		os.WriteFile(filepath.Join(part, "\xff.0000.arrows"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, r := readAll(t, dir)
	if len(r.Parts) != 1 || len(r.Problems) > 0 || len(got["exit"]) != len(want) || len(got["clock"]) > 0 {
		t.Errorf("%d parts, %v, %d rows of exit, %d of clock", len(r.Parts), r.Problems, len(got["exit"]), len(got["clock"]))
	}
	if ids, err := RunIDs(dir); err != nil || len(ids) != 1 {
		t.Errorf("run ids %q, %v", ids, err)
	}
}

// A part that does not say what run it is of counts once as well.
func TestOnceInAnArchive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	writeAs(t, dir, "exit", thisVersion, Exit{ExitCode: 3})
	if rows, r := readFS(t, archived(t, dir, zip.Store), ".", "."); len(rows) != 1 || len(r.Parts) != 1 {
		t.Errorf("%d rows, %d parts", len(rows), len(r.Parts))
	}
}

package traces

import (
	"os"
	"path/filepath"
	"testing"
)

// What is found after a recorder has died goes on where it ended, also after a torn tail.
func TestContinue(t *testing.T) {
	for _, torn := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "t.dptrace")
		w, err := Create(dir, "host-1", Options{RunID: "run", BootID: "boot"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			w.Append(Optimizer{Head: Head{TsNS: int64(i)}, Optimizer: uint32(i)})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if torn {
			f, err := os.OpenFile(filepath.Join(w.Dir(), "optimizer.0000.arrows"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString("a message that its writer did not end")
			f.Close()
		}
		for n := 3; n < 9; n += 3 {
			run, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			in, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			more, err := Continue(in, run.Parts[0], Options{})
			if err != nil {
				t.Fatal(err)
			}
			in.Close()
			for i := range 3 {
				more.Append(Optimizer{Head: Head{TsNS: int64(n + i)}, Optimizer: uint32(n + i)})
			}
			more.Append(Lost{Source: "recorder", Reason: "why"})
			if err := more.Close(); err != nil {
				t.Fatal(err)
			}
		}
		run, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		next := uint32(0)
		for _, row := range Rows[Optimizer](run) {
			if row.Optimizer != next || row.Seq != uint64(next) {
				t.Errorf("torn %v: row %+v, want number %d", torn, row, next)
			}
			next++
		}
		problems := 0
		if torn {
			problems = 1
		}
		if next != 9 || len(run.Problems) != problems || run.Parts[0].RunID != "run" || run.Parts[0].Sealed {
			t.Errorf("torn %v: %d rows, problems %v, part %+v", torn, next, run.Problems, run.Parts[0])
		}
	}
}

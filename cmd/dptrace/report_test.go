package main

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dptrace/dptrace/analyze/detect/detecttest"
)

// The stories in testdata/report need no Python: their traces are played.
// $DUPLICATED has a proven finding, $CLEAN none; $CUT and $CUT_DUPLICATED are
// recordings that were cut. $RANK0 and $RANK1 are one run that was recorded by
// two recorders, $OTHER is another one.
func TestReportScripts(t *testing.T) {
	played := map[string]string{
		"DUPLICATED":     play(t, true, true),
		"CLEAN":          play(t, false, true),
		"CUT":            play(t, false, false),
		"CUT_DUPLICATED": play(t, true, false),
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/report",
		Setup: func(e *testscript.Env) error {
			for name, dir := range played {
				copied := filepath.Join(e.WorkDir, name+".dptrace")
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					return err
				}
				e.Setenv(name, filepath.Base(copied))
			}
			return recorded(e)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
			"tear":  tear,
		},
	})
}

// recorded unpacks traces of real programs.
func recorded(e *testscript.Env) error {
	const fixtures = "../../analyze/detect/rng-duplicate-ranks/testdata/"
	ranks, err := zip.OpenReader(fixtures + "bad-apart.dptrace.zip")
	if err != nil {
		return err
	}
	defer ranks.Close()
	for i := range 2 {
		name, part := fmt.Sprintf("RANK%d", i), fmt.Sprintf("host-%d", i+1)
		e.Setenv(name, name+".dptrace")
		files, err := fs.Sub(ranks, part)
		if err == nil {
			err = os.CopyFS(filepath.Join(e.WorkDir, name+".dptrace", part), files)
		}
		if err != nil {
			return err
		}
	}
	other, err := zip.OpenReader(fixtures + "good.dptrace.zip")
	if err != nil {
		return err
	}
	defer other.Close()
	e.Setenv("OTHER", "OTHER.dptrace")
	return os.CopyFS(filepath.Join(e.WorkDir, "OTHER.dptrace"), other)
}

// play makes a trace of two epochs with two workers, whose generators are
// copies of one or not.
func play(t *testing.T, duplicated, sealed bool) string {
	run := detecttest.NewRun(t)
	loader := run.Process(-1, 0).Open(detecttest.Loader{
		Workers: 2,
		Slots:   []detecttest.Slot{{Path: "dataset.rng", Owner: "__main__.Points", Role: "dataset", Line: 9}},
		Start: func(pass, worker int) []*detecttest.Gen {
			if duplicated {
				return []*detecttest.Gen{detecttest.PCG(7)}
			}
			return []*detecttest.Gen{detecttest.PCG(uint64(100*pass + worker))}
		},
		Fetch: func(_, _, _ int, g []*detecttest.Gen) { g[0].Draw(8) },
	})
	loader.Pass(detecttest.Train)
	loader.Pass(detecttest.Train)
	if sealed {
		run.Seal()
	}
	run.Open(t) // flushes
	return run.Dir
}

// tear TRACE TABLE cuts the last bytes off the table's segments.
func tear(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tear TRACE TABLE")
	}
	segments, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*", args[1]+"*.arrow*"))
	ts.Check(err)
	if len(segments) == 0 {
		ts.Fatalf("tear: no segment of %s", args[1])
	}
	for _, s := range segments {
		info, err := os.Stat(s)
		ts.Check(err)
		ts.Check(os.Truncate(s, info.Size()-40))
	}
}

func TestUTF8Locale(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"LANG": "de_DE.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LC_CTYPE": "C.utf8"}, true},
		{nil, false},
	} {
		if got := utf8Locale(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %v, want %v", c.env, got, c.want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "ac", 1}, {"kitten", "sitting", 3}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

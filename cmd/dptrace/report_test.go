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
	"github.com/dptrace/dptrace/traces"
)

// The stories in testdata/report need no Python: their traces are played.
// $DUPLICATED has a proven finding, $CLEAN none; $CUT and $CUT_DUPLICATED are
// recordings that were cut; $HOSTILE and $HOSTILE_TOO are two runs whose names and
// texts are commands to a terminal. $RANK0 and $RANK1 are one run that was recorded by
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
			for _, name := range []string{"HOSTILE", "HOSTILE_TOO"} {
				folder := name + steering + ".dptrace"
				e.Setenv(name, folder)
				if err := hostile(filepath.Join(e.WorkDir, folder), name); err != nil {
					return err
				}
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
	const fixtures = "../../analyze/detect/rngduplicateranks/testdata/"
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
		Fetch: func(_, _, _ int, g []*detecttest.Gen) { g[0].Draw(80) },
	})
	loader.Pass(detecttest.Train)
	loader.Pass(detecttest.Train)
	if sealed {
		run.Seal()
	}
	run.Open(t) // flushes
	return run.Dir
}

// steering clears a terminal, recolours it, and turns the direction of writing.
const steering = "\x1b[2J\u009b31m\u202e"

// hostile writes a run of two ranks, cut, whose every text steers a terminal.
func hostile(folder, id string) error {
	w, err := traces.Create(folder, "host"+steering, traces.Options{RunID: id + steering, BootID: steering})
	if err != nil {
		return err
	}
	w.Append(traces.Meta{Key: "command", Value: "[\"python\", \"\\u001b[2J\"]"})
	w.Append(traces.Meta{Key: "tier", Value: steering})
	w.Append(traces.Meta{Key: "tier_refused", Value: steering})
	w.Append(traces.Lost{Source: steering, Table: steering, Reason: steering, Count: 1})
	for rank := range int32(2) {
		proc := traces.Head{TsNS: 1, Proc: uint32(rank + 1)}
		w.Append(traces.Process{Head: proc, Pid: 7 + rank, Kind: steering, Hook: "off", Cmdline: steering, Exe: steering, Cwd: steering, Python: steering, Torch: steering,
			Note: steering, Rank: rank, WorldSize: 2})
		w.Append(traces.Loader{Head: proc, Loader: 1, DatasetClass: steering, Sampler: steering, File: steering, Line: 3, NumWorkers: 1, Length: 4, BatchSize: 1})
		for pass := range uint32(2) {
			w.Append(traces.Pass{Head: proc, Loader: 1, Pass: pass, Phase: "begin"})
			w.Append(traces.BatchPut{Head: proc, Loader: 1, Pass: pass, Keys: steering})
			w.Append(traces.BatchNext{Head: proc, Loader: 1, Pass: pass, Status: "ok", Grad: true})
			w.Append(traces.Exception{Head: proc, Loader: 1, Pass: pass, Stage: steering, Type: steering, Message: steering, File: steering})
		}
	}
	return w.Close()
}

// tear TRACE TABLE cuts the last bytes off the table's segments.
func tear(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tear TRACE TABLE")
	}
	trace := ts.MkAbs(args[0])
	segments, err := fs.Glob(os.DirFS(trace), "*/"+args[1]+"*.arrow*")
	ts.Check(err)
	if len(segments) == 0 {
		ts.Fatalf("tear: no segment of %s", args[1])
	}
	for _, s := range segments {
		file := filepath.Join(trace, s)
		info, err := os.Stat(file)
		ts.Check(err)
		ts.Check(os.Truncate(file, info.Size()-40))
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

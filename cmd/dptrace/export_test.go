package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

// The stories in testdata/export. $MEASURED holds memory that one process has
// gained, in $CUT_MEASURED the recording was cut, $UNMEASURED has no such rows.
func TestExportScripts(t *testing.T) {
	played := map[string]string{
		"MEASURED":     measured(t, true, true),
		"CUT_MEASURED": measured(t, true, false),
		"UNMEASURED":   measured(t, false, true),
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/export",
		Setup: func(e *testscript.Env) error {
			for name, dir := range played {
				if err := os.CopyFS(filepath.Join(e.WorkDir, name+".dptrace"), os.DirFS(dir)); err != nil {
					return err
				}
				e.Setenv(name, name+".dptrace")
			}
			for _, name := range []string{"HOME", "GOCACHE", "PATH"} { // `go tool pprof` is built on its first use
				e.Setenv(name, os.Getenv(name))
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

func measured(t *testing.T, rows, sealed bool) string {
	run := detecttest.NewRun(t)
	p := run.Process(-1, 0)
	if rows {
		for i := range int64(2) {
			run.W.Append(traces.Memory{Head: traces.Head{TsNS: 2e9 + i, Proc: p.Proc}, Source: "smaps_rollup", Rss: 1 << 30, PrivateDirty: 1<<20 + i*12_345})
		}
	}
	if sealed {
		run.Seal()
	}
	run.Open(t) // flushes
	return run.Dir
}

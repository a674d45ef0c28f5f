package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// A launcher that restarts its ranks, or is given its id again, makes recordings
// that must not be compared: the last one is reported, and it is said.
func TestRestarted(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for attempt := range 2 {
		for rank := range 2 {
			path := fmt.Sprintf("%s/%d-%d.dptrace", dir, attempt, rank)
			w, err := traces.Create(path, fmt.Sprintf("node%d-%d", rank, attempt), traces.Options{RunID: "torchelastic-x", BootID: fmt.Sprint("boot ", rank)})
			if err != nil {
				t.Fatal(err)
			}
			const hour = int64(3600e9)
			begin := (int64(attempt) + 1) * hour
			w.Append(traces.Meta{Head: traces.Head{TsNS: begin}, Key: "started_ns", Value: strconv.FormatInt(100*hour+begin, 10)})
			w.Append(traces.Host{Head: traces.Head{TsNS: begin + hour/2}})
			if err := w.Seal(); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
	}
	for _, oneRun := range []bool{false, true} {
		var stderr strings.Builder
		run, err := openRun(&stderr, paths, oneRun)
		if err != nil {
			t.Fatal(err)
		}
		if oneRun && (len(run.Parts) != 4 || stderr.String() != "") {
			t.Errorf("as one run: %d parts, stderr %q", len(run.Parts), stderr.String())
		}
		if !oneRun && (len(run.Parts) != 2 || run.Parts[0].Trace != paths[2] || !strings.HasPrefix(stderr.String(), "dptrace: run torchelastic-x was recorded 2 times")) {
			t.Errorf("%d parts, the first of %s, stderr %q", len(run.Parts), run.Parts[0].Trace, stderr.String())
		}
	}
}

func TestNewestTrace(t *testing.T) {
	folder := t.TempDir()
	if _, err := newestTrace(folder); err == nil {
		t.Error("found a trace in an empty folder")
	}
	for _, name := range []string{"dptrace-20261120-090000-99.dptrace", "dptrace-20261121-080000-7.dptrace", "zzz.dptrace"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "dptrace-20261122-080000-7.dptrace"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := newestTrace(folder)
	if want := filepath.Join(folder, "dptrace-20261121-080000-7.dptrace"); got != want || err != nil {
		t.Errorf("newestTrace = %q, %v; want %q: files and other names do not count", got, err, want)
	}
}

package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/report"
)

// TestCopies: the table of a loop's time has the copies that its thread waited for, and nothing of CUDA where there is none.
func TestCopies(t *testing.T) {
	for name, batch := range map[string]func(*Cuda, int){
		"copied":   func(c *Cuda, n int) { c.StagedWaited(1<<40+uint64(n%3)<<30, 16<<20) },
		"CPU only": nil,
	} {
		run := NewRun(t)
		accelerators := "none"
		if batch != nil {
			accelerators = "nvidia"
			run.WatchCuda()
		}
		run.Machine("amd64", accelerators)
		run.Process(-1, 0).Copying(Copying{Batch: batch})
		run.Seal()
		r, err := analyze.Run(run.Open(t), analyze.Rules)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := report.Text(&out, r, report.Options{Verbose: true}); err != nil {
			t.Fatal(err)
		}
		row := ""
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "copies to the device  ") {
				row = strings.Join(strings.Fields(line), " ")
			}
		}
		want := "copies to the device 0.3 s 33 % 2.9 ms"
		if batch == nil {
			want = ""
		}
		if !strings.HasSuffix(row, want) || batch == nil && row != "" {
			t.Errorf("%s: %q, want %q in\n%s", name, row, want, out.String())
		}
		out.Reset()
		if err := report.Text(&out, r, report.Options{}); err != nil {
			t.Fatal(err)
		}
		if batch == nil && (strings.Contains(out.String(), "copy-") || strings.Contains(out.String(), "CUDA")) {
			t.Errorf("a run without a device:\n%s", out.String())
		}
	}
}

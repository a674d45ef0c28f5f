package export_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/export/pprof"
	"github.com/dptrace/dptrace/analyze/report"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/traces"
)

// TestH2D: the report's JSON, its table of a loop's time, the stage h2d and pprof's copy_time are of the same copies, and
// say the same of recorded runs.
func TestH2D(t *testing.T) {
	fixtures, err := filepath.Glob("../detect/copy*/testdata/*.dptrace.zip")
	if err != nil || len(fixtures) < 9 {
		t.Fatal(fixtures, err)
	}
	rows := 0
	for _, name := range fixtures {
		t.Run(strings.TrimPrefix(strings.TrimSuffix(name, ".dptrace.zip"), "../detect/"), func(t *testing.T) {
			archive, err := zip.OpenReader(name)
			if err != nil {
				t.Fatal(err)
			}
			defer archive.Close()
			run, err := traces.OpenFS(archive, ".")
			if err != nil {
				t.Fatal(err)
			}
			r, err := analyze.Run(run, analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			h, row := reported(t, r)
			all, looked, steps := staged(t, r)
			if h.Steps != steps || h.Copies != looked.Copies || h.Others != 0 || looked.Copies == 0 || h.Unknown != "" {
				t.Errorf("%d copies, %d others in %d steps, unknown %q; of the stage %d in %d", h.Copies, h.Others, h.Steps, h.Unknown,
					looked.Copies, steps)
			}
			if got := int64(math.Round(*h.TotalS * 1e6)); got != (looked.NS+500)/1000 || *h.StepBytes != looked.Bytes/int64(steps) {
				t.Errorf("%d us, %d bytes a step; of the stage %+v in %d steps", got, *h.StepBytes, looked, steps)
			}
			if one := h.Memory[0]; len(h.Memory) != 1 || one.Copies != h.Copies || one.Bytes != looked.Bytes || one.TotalS != *h.TotalS {
				t.Errorf("memory %+v of %d copies", h.Memory, h.Copies)
			}
			if row != "" {
				rows++
				if want := fmt.Sprintf("%.3g ms", *h.BlockedS*1e3/float64(h.Steps)); !strings.HasSuffix(row, " "+want) {
					t.Errorf("the table says %q, JSON %s", row, want)
				}
			}
			// pprof has besides what was copied in no step.
			if got, want := profiled(t, r), sum(all, outside(t, r)); got.Bytes != want.Bytes || got.NS != want.NS {
				t.Errorf("pprof has %+v, want %+v: of steps %+v", got, want, all)
			}
		})
	}
	if rows != 3 {
		t.Errorf("%d tables have copies, want those of the three programs that wait for them", rows)
	}
}

// staged is the stage h2d of all batches, and of those that the report looks at: after ten of the process.
func staged(t *testing.T, r *analyze.Result) (all, looked stages.Copied, steps int) {
	t.Helper()
	n := 0
	if err := stages.Each(r.Run, r.Timeline, stages.NewClock(r.Run, r.Timeline), func(b *stages.Batch) error {
		if b.Delivered {
			n++
		}
		if all = sum(all, b.Copied); n > 10 {
			looked = sum(looked, b.Copied)
			steps++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all, looked, steps
}

// outside is what was copied to devices in no step: before the first delivery, in next(), by other threads.
func outside(t *testing.T, r *analyze.Result) (out stages.Copied) {
	t.Helper()
	var steps []stages.Interval
	clock := stages.NewClock(r.Run, r.Timeline)
	_ = stages.Each(r.Run, r.Timeline, clock, func(b *stages.Batch) error {
		steps = append(steps, b.Stages[stages.Step])
		return nil
	})
	for part, c := range traces.Rows[traces.Copy](r.Run) {
		at := clock.Of(part, c.TsNS)
		in := func(s stages.Interval) bool { return s.Begin <= at && at < s.End }
		if c.Direction == "to-device" && !(c.Main && slices.ContainsFunc(steps, in)) {
			out = sum(out, stages.Copied{Copies: 1, Bytes: c.Bytes, NS: stages.InCopy(&c)})
		}
	}
	return out
}

// profiled is what pprof has of copies to devices.
func profiled(t *testing.T, r *analyze.Result) (all stages.Copied) {
	t.Helper()
	var out bytes.Buffer
	if err := pprof.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) int {
		return slices.IndexFunc(p.SampleType, func(v *profile.ValueType) bool { return v.Type == name })
	}
	for _, s := range p.Sample {
		if strings.Contains(s.Location[0].Line[0].Function.Name, "HtoD") {
			all.Bytes += s.Value[of("copied")]
			all.NS += s.Value[of("copy_time")]
		}
	}
	return all
}

func sum(a, b stages.Copied) stages.Copied {
	return stages.Copied{Copies: a.Copies + b.Copies, Bytes: a.Bytes + b.Bytes, NS: a.NS + b.NS}
}

type h2d struct {
	Steps, Copies, Others int
	TotalS                *float64 `json:"total_s"`
	StepMS                *float64 `json:"step_ms"`
	StepBytes             *int64   `json:"step_bytes"`
	BlockedS              *float64 `json:"blocked_s"`
	Memory                []struct {
		Memory string
		Copies int
		Bytes  int64
		TotalS float64 `json:"total_s"`
	}
	Unknown string
}

// reported is what the report says of the first loop: as JSON, and the row of its table.
func reported(t *testing.T, r *analyze.Result) (h *h2d, row string) {
	t.Helper()
	var out bytes.Buffer
	if err := report.JSON(&out, r, report.Options{}); err != nil {
		t.Fatal(err)
	}
	var document struct{ Loops []struct{ H2D *h2d } }
	if err := json.Unmarshal(out.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := report.Text(&out, r, report.Options{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "copies to the device  ") {
			row = strings.Join(strings.Fields(line), " ")
		}
	}
	return document.Loops[0].H2D, row
}

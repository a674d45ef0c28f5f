package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/report"
	"github.com/dptrace/dptrace/traces"
)

// TestH2D: the copies of a loop's batches in JSON; what is not known is null, and says why.
func TestH2D(t *testing.T) {
	const mib = 1 << 20
	staged := func(c *Cuda, n int) { c.StagedWaited(1<<40+uint64(n%3)<<30, 6*mib) }
	pinned := func(c *Cuda) { c.Memory("pinned", 1<<41, 1<<30) }
	for name, c := range map[string]struct {
		play Copying
		gpu  string // accelerators; "" an nvidia
		hook bool   // tier
		more func(*Run, *Process)
		want string // "" there is none
	}{
		"pageable": {play: Copying{Batch: staged},
			want: `{"steps":90,"copies":90,"total_s":0.103372,"step_ms":1.149,"step_bytes":6291456,"blocked_s":0.103372,"memory":[{"memory":"pageable","copies":90,"bytes":566231040,"total_s":0.103372}],"others":0,"unknown":""}`},
		"two kinds, and one that the thread does not wait for": {play: Copying{Before: pinned, Batch: func(c *Cuda, n int) {
			staged(c, n)
			c.Async(1<<41+uint64(n%3)<<24, mib)
		}},
			want: `{"steps":90,"copies":180,"total_s":0.103642,"step_ms":1.152,"step_bytes":7340032,"blocked_s":0.103372,"memory":[{"memory":"pageable","copies":90,"bytes":566231040,"total_s":0.103372},{"memory":"pinned","copies":90,"bytes":94371840,"total_s":0.00027}],"others":0,"unknown":""}`},
		"none": {play: Copying{Before: pinned, Calls: map[string]uint64{"cuLaunchKernel": 100}},
			want: `{"steps":90,"copies":0,"total_s":0,"step_ms":0,"step_bytes":0,"blocked_s":0,"memory":[],"others":0,"unknown":""}`},
		"CPU only": {gpu: "none"},
		"CPU only, rows are lost": {gpu: "none", more: func(r *Run, p *Process) {
			r.Add(0, traces.Lost{Source: "ring", Table: "copy", Count: 5, Reason: "full"})
		}},
		"a device that is not used": {},
		"hook tier":                 {hook: true, want: `{"steps":0,"copies":0,"total_s":null,"step_ms":null,"step_bytes":null,"blocked_s":null,"memory":[],"others":0,"unknown":"copies to a device were not recorded: that takes the kernel tier, or record --copies"}`},
		"rows are lost": {play: Copying{Batch: staged}, more: func(r *Run, p *Process) {
			r.Add(0, traces.Lost{Source: "ring", Table: "copy", Count: 5, Reason: "full"})
		},
			want: `{"steps":90,"copies":90,"total_s":0.103372,"step_ms":1.149,"step_bytes":6291456,"blocked_s":null,"memory":[{"memory":"unknown","copies":90,"bytes":566231040,"total_s":0.103372}],"others":0,"unknown":"records were lost: 5 of copy (full); it is not known what memory all 90 copies read from: it was pinned before it was watched, is managed, or rows are lost"}`},
		"all rows of copies are lost": {play: Copying{Before: pinned, Calls: map[string]uint64{"cuMemcpyHtoDAsync_v2": 100}},
			more: func(r *Run, p *Process) {
				r.Add(0, traces.Lost{Source: "ring", Table: "copy", Count: 100, Reason: "full"})
			},
			want: `{"steps":0,"copies":0,"total_s":null,"step_ms":null,"step_bytes":null,"blocked_s":null,"memory":[],"others":0,"unknown":"records were lost: 100 of copy (full)"}`},
		"copies that do not come in step": {play: Copying{Batch: func(c *Cuda, n int) {
			for range n % 3 {
				staged(c, n)
			}
		}}, want: `{"steps":0,"copies":0,"total_s":null,"step_ms":null,"step_bytes":null,"blocked_s":null,"memory":[],"others":0,"unknown":"the copies do not come in step with its batches: 30 of 90 steps have 2 copies"}`},
		"another thread's": {play: Copying{Batch: func(c *Cuda, n int) {
			c.Aside = true
			staged(c, n)
		}}, want: `{"steps":0,"copies":0,"total_s":null,"step_ms":null,"step_bytes":null,"blocked_s":null,"memory":[],"others":0,"unknown":"the copies are made by another thread than the first one: whether the training waits for it is not seen"}`},
		"its driver was loaded before it was watched": {play: Copying{Batch: staged},
			more: func(r *Run, p *Process) {
				r.Add(p.Proc, traces.CudaLibrary{Library: "driver", Path: "/usr/lib/libcuda.so.1", Late: true, Watched: 19, How: "multi"})
			},
			want: `{"steps":90,"copies":90,"total_s":0.103372,"step_ms":1.149,"step_bytes":6291456,"blocked_s":null,"memory":[{"memory":"unknown","copies":90,"bytes":566231040,"total_s":0.103372}],"others":0,"unknown":"it is not known what memory all 90 copies read from: it was pinned before it was watched, is managed, or rows are lost"}`},
	} {
		t.Run(name, func(t *testing.T) {
			run := NewRun(t)
			if !c.hook {
				run.WatchCuda()
			}
			gpu := c.gpu
			if gpu == "" {
				gpu = "nvidia"
			}
			run.Machine("amd64", gpu)
			p := run.Process(-1, 0)
			if c.more != nil {
				c.more(run, p)
			}
			p.Copying(c.play)
			run.Seal()
			if got := h2d(t, run); got != c.want {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestH2DOfRanks: what is known of one rank is no mean over all of them.
func TestH2DOfRanks(t *testing.T) {
	run := NewRun(t)
	run.WatchCuda()
	run.Machine("amd64", "nvidia")
	run.Process(0, 2).Copying(Copying{Batch: func(c *Cuda, n int) { c.StagedWaited(1<<40+uint64(n%3)<<30, 6<<20) }})
	p := run.Process(1, 2)
	run.Add(p.Proc, traces.CudaLibrary{Library: "driver", Path: "/usr/lib/libcuda.so.1", Note: "uprobes are refused"})
	p.Copying(Copying{})
	run.Seal()
	want := `{"steps":90,"copies":90,"total_s":0.103372,"step_ms":1.149,"step_bytes":6291456,"blocked_s":0.103372,"memory":[{"memory":"pageable","copies":90,"bytes":566231040,"total_s":0.103372}],"others":0,"unknown":"calls of CUDA could not be watched: uprobes are refused"}`
	if got := h2d(t, run); got != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
}

// TestH2DLostTwice: what both ranks lack is said once.
func TestH2DLostTwice(t *testing.T) {
	run := NewRun(t)
	run.WatchCuda()
	run.Machine("amd64", "nvidia")
	run.Add(0, traces.Lost{Source: "ring", Table: "copy", Count: 5, Reason: "full"})
	for rank := range 2 {
		run.Process(rank, 2).Copying(Copying{Batch: func(c *Cuda, n int) { c.StagedWaited(1<<40+uint64(n%3)<<30, 6<<20) }})
	}
	run.Seal()
	if got := h2d(t, run); strings.Count(got, "records were lost") != 1 || !strings.Contains(got, `"steps":180,"copies":180,`) {
		t.Error(got)
	}
}

// h2d is what JSON says of the only loop's copies, in one line; "" nothing.
func h2d(t *testing.T, run *Run) string {
	t.Helper()
	r, err := analyze.Run(run.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	var out, line bytes.Buffer
	if err := report.JSON(&out, r, report.Options{}); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Loops []struct {
			H2D json.RawMessage `json:"h2d"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Loops) != 1 || !strings.Contains(out.String(), `"processors"`) {
		t.Fatalf("%d loops", len(document.Loops))
	}
	if len(document.Loops[0].H2D) == 0 {
		return ""
	}
	if err := json.Compact(&line, document.Loops[0].H2D); err != nil {
		t.Fatal(err)
	}
	return line.String()
}

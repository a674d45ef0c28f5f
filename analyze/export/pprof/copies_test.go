package pprof_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

// What was copied and how long it took, by function and by what came after it.
func TestCopies(t *testing.T) {
	run := NewRun(t)
	run.Process(-1, 0).Copying(Copying{Batches: 10, Batch: func(c *Cuda, n int) {
		c.Staged(1<<40, 600_000)
		c.Waited(1<<41, 1_000_000)
		c.Copy(traces.Copy{Bytes: 5, CallNS: 7, Next: "stream-sync", NextNS: 1000, GapNS: 30_000, Function: "cuMemcpyDtoHAsync_v2", Direction: "to-host"})
		c.Copy(traces.Copy{Bytes: 5, CallNS: 7, Capturing: true})
		c.Copy(traces.Copy{Bytes: 5, CallNS: 7, Result: 1})
		if n == 0 {
			c.At(7, "/home/me/train.py:31 fit\n/home/me/train.py:90 <module>")
		}
		c.Site = 7
		c.Copy(traces.Copy{Bytes: 2, CallNS: 3, Function: "cuMemcpyHtoD_v2"})
		c.Site = 0
	}})
	run.Add(77, traces.Copy{Bytes: 5}) // of no process that is known
	run.Seal()
	p, err := profile.Parse(bytes.NewReader(write(t, run.Open(t))))
	if err != nil {
		t.Fatal(err)
	}
	got, at := map[string][2]int64{}, ""
	for _, s := range p.Sample {
		if v := [2]int64{s.Value[4], s.Value[5]}; v != [2]int64{} {
			got[s.Location[0].Line[0].Function.Name] = v
			if f := s.Location[1].Line[0]; f.Line == 31 {
				at = fmt.Sprintf("%s:%d %s, %s", f.Function.Filename, f.Line, f.Function.Name, s.Location[2].Line[0].Function.Name)
			}
		}
	}
	want := map[string][2]int64{
		"cuMemcpyHtoDAsync_v2":                          {6_000_000, 1_000_000},
		"cuMemcpyHtoDAsync_v2, then waits: stream-sync": {10_000_000, 36_030_000},
		"cuMemcpyDtoHAsync_v2":                          {50, 70},
		"cuMemcpyHtoD_v2":                               {20, 30},
	}
	if want := "/home/me/train.py:31 fit, <module>"; at != want {
		t.Errorf("asked for at %q, want %q", at, want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Times that no program has must not end the export.
func TestHostileCopies(t *testing.T) {
	run := NewRun(t)
	run.Process(-1, 0).Copying(Copying{Batches: 3, Batch: func(c *Cuda, n int) {
		c.Run.Add(c.Process.Proc, traces.Copy{Bytes: math.MinInt64, CallNS: math.MaxInt64, NextNS: math.MaxInt64, GapNS: 0})
	}})
	run.Seal()
	if _, err := profile.Parse(bytes.NewReader(write(t, run.Open(t)))); err != nil {
		t.Fatal(err)
	}
}

// Who writes to inherited memory: each look counts as 64 faults.
func TestWritten(t *testing.T) {
	run := NewRun(t)
	p := run.Process(-1, 0)
	run.Add(p.Proc, traces.CallSite{Site: 5, Frames: "/home/me/data.py:16 Photos.__getitem__\n/venv/lib/python3.11/site-packages/torch/fetch.py:58 fetch"})
	run.Add(p.Proc, traces.Touch{Site: 5, Seen: 3})
	run.Add(p.Proc, traces.Touch{Site: 5, Seen: 10})
	run.Add(p.Proc, traces.Touch{Site: 6, Seen: 2})
	run.Add(p.Proc, traces.Touch{Site: 7, Seen: math.MaxUint64})
	run.Add(99, traces.Touch{Site: 5, Seen: 1})
	run.Seal()
	profile, err := profile.Parse(bytes.NewReader(write(t, run.Open(t))))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, s := range profile.Sample {
		if v := s.Value[6]; v != 0 && v < 1<<40 {
			got[fmt.Sprintf("%s:%d", s.Location[0].Line[0].Function.Name, s.Location[0].Line[0].Line)] = v
		}
	}
	if diff := cmp.Diff(map[string]int64{"Photos.__getitem__:16": 640, "not known:0": 128}, got); diff != "" {
		t.Error(diff)
	}
}

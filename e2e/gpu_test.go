package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dptrace/dptrace/traces"
)

// gpuCase is as copiesCase, on a real device.
var gpuCases = []copiesCase{
	{"pageable", []string{"copy-pageable proven", "copy-pageable likely"}, "copy-pageable"},
	{"unhelped", []string{"copy-pageable proven", "copy-pageable likely"}, "copy-pageable"},
	{"waits", []string{"copy-pinned-sync proven", "copy-pinned-sync likely"}, "copy-pinned-sync"},
	{"cast", []string{"copy-unpinned-by-cast proven", "copy-unpinned-by-cast likely"}, "copy-unpinned-by-cast"},
	{"strided", []string{"copy-unpinned-by-cast proven", "copy-unpinned-by-cast likely"}, "copy-unpinned-by-cast"},
	{"noop", []string{"pin-memory-noop proven"}, "pin-memory-noop"},

	{"good", []string{"copy-pageable clean"}, ""},
	{"pins", []string{"copy-pageable clean"}, ""},
	{"cast_later", []string{"copy-unpinned-by-cast clean"}, ""},
	{"item", []string{"copy-pinned-sync clean"}, ""},
	{"told", []string{"copy-pinned-sync clean", "copy-pinned-sync cannot-tell"}, ""},
	{"checkpoint", []string{"copy-pageable clean"}, ""},
	{"prefetch", []string{"copy-pinned-sync clean"}, ""},
	{"registered", []string{"copy-pageable clean"}, ""},
	{"small", []string{"copy-pageable clean", "copy-pageable not-applicable", "copy-pageable cannot-tell"}, ""},
	{"thread", []string{"copy-pageable cannot-tell"}, ""},
}

// TestGPU is `make gpu-check`: it runs only where DPTRACE_GPU_PAGE names the page
// that its table is written to. What dptrace counts is compared with what CUPTI
// does, in a run of the same program under torch.profiler.
func TestGPU(t *testing.T) {
	page := os.Getenv("DPTRACE_GPU_PAGE")
	if page == "" {
		t.Skipf("%s: DPTRACE_GPU_PAGE is not set: this is a test of make gpu-check", t.Name())
	}
	p := python(t)
	if why := noKernelTier(); why != "" {
		t.Fatal(why)
	}
	probe := run(t, t.TempDir(), p.Path, "-c", "import torch; torch.zeros(1).cuda()")
	if probe.code != 0 {
		t.Fatalf("no CUDA device that torch can use; nothing was run, and %s is as it was:\n%s", page, probe.tail())
	}
	driver, _ := os.ReadFile("/proc/driver/nvidia/version")
	var table strings.Builder
	var facts gpuTruth
	for _, c := range gpuCases {
		t.Run(c.way, func(t *testing.T) {
			row, truth := gpuRow(t, p, c)
			table.WriteString(row)
			facts = truth
		})
	}
	version, _, _ := strings.Cut(string(driver), "\n")
	text := fmt.Sprintf("%s\nLast run: %s, %s, torch %s for CUDA %s.\n\n%s\n\n%s%s", gpuHead, time.Now().UTC().Format(time.DateOnly), facts.Device, facts.Torch,
		facts.Cuda, version, gpuTable, table.String())
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	gpuHead = "# Copies to a real device\n\n`make gpu-check` runs `e2e/gpu/train.py` in each of its ways: once recorded, and once under torch.profiler " +
		"(CUPTI), whose\nrecords of copies of more than 64 KiB to the device are the truth for ours.\n"
	gpuTable = "| way | said | copies recorded | CUPTI: pageable | CUPTI: pinned |\n| --- | --- | --- | --- | --- |\n"
)

// gpuTruth is what the program writes under torch.profiler.
type gpuTruth struct {
	Pageable, Pinned    int
	Device, Torch, Cuda string
}

// gpuRow runs one way, twice.
func gpuRow(t *testing.T, p interpreter, c copiesCase) (row string, truth gpuTruth) {
	program, err := filepath.Abs("gpu/train.py")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "truth.json")
	if profiled := run(t, folder, p.Path, program, c.way, file); profiled.code != 0 {
		t.Fatalf("under torch.profiler it exits %d:\n%s", profiled.code, profiled.tail())
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &truth)
	}
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(folder, "run.dptrace")
	if recorded := run(t, folder, dptrace, "record", "--tier", "kernel", "-o", trace, "--", p.Path, program, c.way); recorded.code != 0 {
		t.Fatalf("recorded it exits %d:\n%s", recorded.code, recorded.tail())
	}
	trail, err := traces.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	copies := 0
	for _, row := range traces.Rows[traces.Copy](trail) {
		if row.Direction == "to-device" && row.Result == 0 && !row.Capturing {
			copies++
		}
	}
	said := c.judge(t, reportOf(t, trace))
	if copies != truth.Pageable+truth.Pinned {
		t.Errorf("%d copies recorded, CUPTI has %d", copies, truth.Pageable+truth.Pinned)
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d |\n", c.way, said, copies, truth.Pageable, truth.Pinned), truth
}

// judge holds a report against what may be said, and gives what was.
func (c copiesCase) judge(t *testing.T, r report) string {
	if len(r.Lost) != 0 {
		t.Errorf("lost: %+v", r.Lost)
	}
	said := map[string]string{}
	for _, k := range r.Checks {
		said[k.Rule] = k.Rule + " " + k.Status
	}
	for _, f := range r.Findings {
		said[f.Rule] = f.Rule + " " + f.Certainty
		if f.Certainty != "note" && f.Rule != c.bug {
			t.Errorf("false alarm: %+v", f)
		}
	}
	rule, _, _ := strings.Cut(c.said[0], " ")
	if !slices.Contains(c.said, said[rule]) {
		t.Errorf("%q, want one of %q", said[rule], c.said)
	}
	return said[rule]
}

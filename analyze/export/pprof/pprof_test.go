package pprof_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/export/pprof"
	"github.com/dptrace/dptrace/traces"
)

// Of a played run: main process 1, workers 2 and 3 in pass 0, 4 and 5 in pass 1.
const (
	mainProc = 1
	page     = 4096
)

func head(proc uint32) traces.Head { return traces.Head{TsNS: 5e9, Proc: proc} }

// play makes the trace of two passes with two workers each; rows are added.
func play(t *testing.T, persistent bool, rows ...any) *traces.Run {
	run := detecttest.NewRun(t)
	l := run.Process(-1, 0).Open(detecttest.Loader{Workers: 2, Persistent: persistent, Start: func(int, int) []*detecttest.Gen { return nil }})
	l.Pass(detecttest.Train)
	l.Pass(detecttest.Train)
	run.Meta("tier", "kernel")
	run.Meta("started_ns", "1795000000000000000")
	run.W.Append(traces.Host{Head: head(0), PageSize: page})
	for _, r := range rows {
		run.W.Append(r)
	}
	run.Seal()
	return run.Open(t)
}

// Two containers that share block 101, and memory of neither in block 300.
var kernelRows = []any{
	traces.Extent{Head: head(mainProc), Extent: 1, Loader: 1, Path: "dataset.records (list)", Class: "list", Starts: []int64{100}, Counts: []int64{2}},
	traces.Extent{Head: head(mainProc), Extent: 2, Loader: 1, Path: "dataset.names<str>", Class: "dict", Starts: []int64{101, 200}, Counts: []int64{1, 1}},
	traces.Cow{Head: head(2), Mapping: "heap", User: 10, Blocks: []int64{100}, Pages: []int64{10}},
	traces.Cow{Head: head(2), Mapping: "heap", User: 990, Kernel: 10, Blocks: []int64{100, 101, 300}, Pages: []int64{500, 400, 60}, Final: true}, // 40 in blocks that were not counted
	traces.Cow{Head: head(2), Mapping: "anon", User: 7, Blocks: []int64{200}, Pages: []int64{7}, Final: true},
	traces.Cow{Head: head(2), Mapping: "shm", User: 5000, Final: true},
	traces.Cow{Head: head(2), Mapping: "new", User: 6000, Final: true},
	traces.Cow{Head: head(4), Mapping: "heap", User: 3, Blocks: []int64{100}, Pages: []int64{3}, Final: true},
	traces.Cow{Head: head(mainProc), Mapping: "parent", User: 77, Final: true},
	// Without effect: the faults of this part are counted.
	traces.Private{Head: head(3), Extent: 1, When: "begin"}, traces.Private{Head: head(3), Extent: 1, When: "end", Private: 1 << 20},
	traces.Memory{Head: head(2), Source: "smaps_rollup", Rss: 1, PrivateDirty: 1000},
	traces.Memory{Head: head(2), Source: "statm", Rss: 1},
	traces.Memory{Head: head(2), Source: "smaps_rollup", Rss: 1, PrivateDirty: 9000},
	traces.Memory{Head: head(2), Source: "smaps_rollup"}, // it was ending
}

// flat is value by leaf, worker, pass and mapping.
func flat(t *testing.T, run *traces.Run, value int) map[string]int64 {
	t.Helper()
	p, err := profile.Parse(bytes.NewReader(write(t, run)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, s := range p.Sample {
		if s.Value[value] == 0 {
			continue
		}
		one := func(key string) string { return strings.Join(s.Label[key], ",") }
		all[fmt.Sprintf("%s | %s %s %s %s", s.Location[0].Line[0].Function.Name, one("worker"), one("pass"), one("mapping"), one("proof"))] += s.Value[value]
	}
	return all
}

func analyzed(t *testing.T, run *traces.Run) *analyze.Result {
	t.Helper()
	r, err := analyze.Run(run, nil, pprof.Source)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, run *traces.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Write(&b, analyzed(t, run)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestValues(t *testing.T) {
	const both = "dataset.names<str> + dataset.records (list)"
	growing := func(proc uint32, extent uint32, from, to int64) []any {
		return []any{traces.Private{Head: head(proc), Extent: extent, When: "begin", Private: from}, traces.Private{Head: head(proc), Extent: extent, When: "end", Private: to}}
	}
	extents := kernelRows[:2]
	for _, c := range []struct {
		name       string
		persistent bool
		rows       []any
		value      int
		want       map[string]int64
	}{
		{"kernel, cow", false, kernelRows, 0, map[string]int64{
			"dataset.records (list) | worker 0 pass 0 heap kernel":       500 * page,
			both + " | worker 0 pass 0 heap kernel":                      400 * page,
			"other inherited memory: heap | worker 0 pass 0 heap kernel": 100 * page,
			"dataset.names<str> | worker 0 pass 0 anon kernel":           7 * page,
			"dataset.records (list) | worker 0 pass 1 heap kernel":       3 * page,
		}},
		{"kernel, faults", false, kernelRows, 1, map[string]int64{
			"dataset.records (list) | worker 0 pass 0 heap kernel":                  500,
			both + " | worker 0 pass 0 heap kernel":                                 400,
			"other inherited memory: heap | worker 0 pass 0 heap kernel":            100,
			"dataset.names<str> | worker 0 pass 0 anon kernel":                      7,
			"dataset.records (list) | worker 0 pass 1 heap kernel":                  3,
			"inherited and write-protected, by its own forks too |   parent kernel": 77,
		}},
		{"growth", false, kernelRows, 2, map[string]int64{"worker 0 | worker 0 pass 0 all procfs": 8000}},
		{"hook, apart", false, slices.Concat(extents, growing(2, 1, 4096, 50*page), growing(2, 2, 0, 8*page), growing(2, 0, 4096, 59*page)), 0,
			map[string]int64{"dataset.records (list) | worker 0 pass 0 inherited hook": 49 * page, "dataset.names<str> | worker 0 pass 0 inherited hook": 8 * page}},
		{"hook, shared blocks", false, slices.Concat(extents, growing(2, 1, 0, 50*page), growing(2, 2, 0, 40*page), growing(2, 0, 0, 60*page)), 0,
			map[string]int64{both + " | worker 0 pass 0 inherited hook": 60 * page}},
		{"hook, extents lost", false, growing(3, 9, 0, 5*page), 0, map[string]int64{"container 9 | worker 1 pass 0 inherited hook": 5 * page}},
		{"persistent", true, []any{kernelRows[0], kernelRows[2]}, 0, map[string]int64{"dataset.records (list) | worker 0 passes 0-1 heap kernel": 10 * page}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, flat(t, play(t, c.persistent, c.rows...), c.value)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingMeasured(t *testing.T) {
	if err := pprof.Write(&bytes.Buffer{}, analyzed(t, play(t, false))); !errors.Is(err, pprof.ErrNothing) {
		t.Errorf("error %v, want %v", err, pprof.ErrNothing)
	}
}

func TestTheSameTwice(t *testing.T) {
	run := play(t, false, kernelRows...)
	if !bytes.Equal(write(t, run), write(t, run)) {
		t.Error("two exports of one trace differ")
	}
}

// TestRealTool opens the file with `go tool pprof`: sums and names must be ours.
func TestRealTool(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.pb.gz")
	if err := os.WriteFile(file, write(t, play(t, false, kernelRows...)), 0o600); err != nil {
		t.Fatal(err)
	}
	const bytes = (1000 + 7 + 3) * page
	for _, c := range []struct {
		args []string
		want []string // each: flat and name, in a line of -top
	}{
		{[]string{"-sample_index=cow"}, []string{
			line(500*page+3*page, "dataset.records (list)"), line(400*page, "dataset.names<str> + dataset.records (list)"), line(100*page, "other inherited memory: heap"),
			total(bytes), cum(bytes, "python3 train.py"), cum(bytes, "worker 0"), cum(bytes, "DataLoader at train.py:88")}},
		{nil, []string{total(bytes)}}, // cow is the default
		{[]string{"-sample_index=cow_faults", "-unit=count"}, []string{`^ +77 .* inherited and write-protected, by its own forks too$`, `^ +503 .* dataset\.records \(list\)$`}},
		{[]string{"-sample_index=private_growth"}, []string{line(8000, "worker 0"), total(8000)}},
		{[]string{"-tagroot=worker"}, []string{cum(bytes, "worker 0")}},
		{[]string{"-tagroot=pass"}, []string{cum(1007*page, "pass 0"), cum(3*page, "pass 1")}},
		{[]string{"-tagleaf=mapping"}, []string{line(1003*page, "heap"), line(7*page, "anon")}},
		{[]string{"-tagfocus=pass=pass 1"}, []string{line(3*page, "dataset.records (list)")}},
	} {
		args := append([]string{"tool", "pprof", "-top", "-unit=B", "-nodefraction=0", "-symbolize=none"}, append(c.args, file)...)
		out, err := exec.Command("go", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		for _, want := range c.want {
			if !regexp.MustCompile("(?m)" + want).Match(out) {
				t.Errorf("%v: no line %s in\n%s", c.args, want, out)
			}
		}
	}
}

func line(flat int64, name string) string {
	return `^ +` + strconv.FormatInt(flat, 10) + `B .* ` + regexp.QuoteMeta(name) + `$`
}

func cum(bytes int64, name string) string {
	return ` ` + strconv.FormatInt(bytes, 10) + `B +[0-9.]+% +` + regexp.QuoteMeta(name) + `$`
}

func total(bytes int64) string { return ` of ` + strconv.FormatInt(bytes, 10) + `B total` }

package perfetto_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/export/perfetto"
	"github.com/dptrace/dptrace/traces"
)

const ms = 1_000_000

// play is a main process with one worker and two batches, times in ms.
func play(t *testing.T, rows ...any) *traces.Run {
	run := detecttest.NewRun(t)
	main := run.Process(-1, 0)
	run.Meta("started_ns", "1795000000000000000")
	run.Add(2, traces.Process{Head: at(10), Pid: 1002, Ppid: 1001, Kind: "worker", Hook: "on", Rank: -1, LocalRank: -1})
	run.Add(main.Proc, traces.Loader{Head: at(10), Loader: 1, Length: 8, BatchSize: 4, NumWorkers: 1, InOrder: true, File: "/home/me/train.py", Line: 7, StartMethod: "fork"})
	run.Add(main.Proc, traces.Pass{Head: at(10), Loader: 1, Phase: "begin"})
	run.Add(main.Proc, traces.Worker{Head: at(10), Loader: 1, Pid: 1002, Phase: "begin"})
	run.Add(2, traces.Worker{Head: at(11), Pid: 1002, Phase: "ready"})
	for i := range uint32(2) {
		begin := int64(20 + 10*i)
		run.Add(main.Proc, traces.BatchPut{Head: at(12 + int64(i)), Loader: 1, Batch: i, DurNS: ms / 2, Indices: []int64{1, 2, 3, 4}})
		run.Add(2, traces.BatchFetch{Head: at(begin), Batch: i, Fetch: i, WaitNS: 2 * ms, FetchNS: 5 * ms, CollateNS: ms, PutNS: ms, Samples: 4})
		run.Add(main.Proc, traces.BatchNext{Head: at(begin + 8), Loader: 1, Batch: i, Worker: -2, Status: "ok", CallNS: (begin + 3) * ms, Steps: uint64(i), Grad: true, Optimizer: 1})
	}
	run.Add(main.Proc, traces.BatchNext{Head: at(50), Loader: 1, Batch: 2, Worker: -2, Status: "stop", CallNS: 49 * ms, Steps: 2, Grad: true, Optimizer: 1})
	run.Add(2, traces.Memory{Head: at(30), Rss: 100 << 20, PrivateDirty: 7 << 20, PrivateClean: 1 << 20, Source: "smaps_rollup"})
	run.Add(2, traces.Exit{Head: at(51), ExitCode: -1, Signal: 9, Source: "kernel"})
	for _, r := range rows {
		run.W.Append(r)
	}
	run.Seal()
	return run.Open(t)
}

// at is a time in ms.
func at(t int64) traces.Head { return traces.Head{TsNS: t * ms} }

// drawn is what the UI would show: slices as track/name, in ms.
type drawn struct {
	slices   map[string][][2]float64
	counters map[string][]int64
	instants map[string]float64
	flows    map[uint64][]string
}

func TestTimeline(t *testing.T) {
	out, _ := export(t, play(t))
	d := draw(t, out)
	loader := "loader #1 at /home/me/train.py:7"
	for name, want := range map[string][][2]float64{
		"training loop/wait for " + loader: {{23, 28}, {33, 38}, {49, 50}},
		"training loop/step":               {{28, 33}, {38, 49}},
		"index queue/sampler and queue":    {{11.5, 12}, {12.5, 13}},
		"fetches/hand over":                {{17, 18}, {27, 28}},
		"fetches/wait for indices":         {{18, 20}, {28, 30}},
		"fetches/fetch":                    {{20, 25}, {30, 35}},
		"fetches/collate":                  {{25, 26}, {35, 36}},
	} {
		if got := d.slices[name]; !equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := d.counters["in flight: "+loader]; !equal(got, []int64{1, 2, 1, 0}) {
		t.Errorf("in flight: %v", got)
	}
	if got := d.counters["resident memory"]; !equal(got, []int64{100 << 20}) {
		t.Errorf("resident memory: %v", got)
	}
	if got := d.counters["private memory"]; !equal(got, []int64{8 << 20}) {
		t.Errorf("private memory: %v", got)
	}
	if d.instants["worker 0 of "+loader+" (pid 1002)/killed by SIGKILL"] != 51 {
		t.Errorf("instants: %v", d.instants)
	}
	if len(d.flows) != 2 {
		t.Errorf("%d ways of batches, want 2: %v", len(d.flows), d.flows)
	}
	for id, way := range d.flows {
		if got := strings.Join(way, " > "); got != "sampler and queue > wait for "+loader+" (end) > fetch" { // as they are written: by tables
			t.Errorf("way %x: %s", id, got)
		}
	}
}

// Copies lie on tracks of their streams, with the waits that belong to them.
func TestCopies(t *testing.T) {
	h := func(ms int64) traces.Head { return traces.Head{TsNS: at(ms).TsNS, Proc: 1} }
	rows := []any{
		traces.HostMemory{Head: h(5), What: "pinned", Address: 4096, Bytes: 8192},
		traces.HostMemory{Head: h(6), What: "managed", Address: 1 << 20, Bytes: 8192},
		traces.HostMemory{Head: h(7), What: "registered", Address: 1 << 21, Bytes: 1000},
		traces.HostMemory{Head: h(8), What: "freed", Address: 1 << 20},
		traces.HostMemory{Head: h(9), What: "freed", Address: 4096},
		traces.Copy{Head: h(29), Direction: "to-device", Bytes: 1 << 20, CallNS: ms, Next: "stream-sync", GapNS: 0, NextNS: 2 * ms},
		traces.Copy{Head: h(39), Direction: "to-host", Bytes: 1 << 20, CallNS: 3 * ms, Next: "launch", Stream: 0xab0},
		traces.Copy{Head: h(40), CallNS: math.MaxInt64, NextNS: math.MaxInt64, GapNS: -1, Stream: 7},
	}
	for i := range uint64(40) {
		rows = append(rows, traces.Copy{Head: h(41 + int64(i)), CallNS: ms, Stream: 1000 + i})
	}
	out, _ := export(t, play(t, rows...))
	d := draw(t, out)
	for name, want := range map[string][][2]float64{
		"copies, default stream/copy to the device": {{29, 30}},
		"copies, default stream/wait: stream-sync":  {{30, 32}},
		"copies, stream 0xab0/copy to the host":     {{39, 42}},
	} {
		if got := d.slices[name]; !equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := len(d.slices["copies, other streams/copy"]); got != 11 {
		t.Errorf("%d copies on other streams, want 11", got)
	}
	if got := d.counters["pinned memory"]; !equal(got, []int64{8192, 9192, 1000}) {
		t.Errorf("pinned memory: %v", got)
	}
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A recorded run: what is found stands where its proof is, and all processes are there.
func TestRecorded(t *testing.T) {
	archive, err := zip.OpenReader("../../detect/rngduplicateworkers/testdata/bad.dptrace.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	run, err := traces.OpenFS(archive, ".")
	if err != nil {
		t.Fatal(err)
	}
	out, r := export(t, run)
	d := draw(t, out)
	at := d.instants["findings/rng-duplicate-workers"]
	if begin, end := float64(r.Timeline.Begin)/ms, float64(r.Timeline.End)/ms; at <= begin || at > end {
		t.Errorf("found at %f ms of %f to %f", at, begin, end)
	}
	fetches := 0
	for range traces.Rows[traces.BatchFetch](run) {
		fetches++
	}
	if got := len(d.slices["fetches/fetch"]); got != fetches || fetches == 0 {
		t.Errorf("%d fetches are drawn of %d", got, fetches)
	}
}

// Times that no program has must not end the export, nor draw slices that overlap.
func TestHostileTimes(t *testing.T) {
	h := func(at int64) traces.Head { return traces.Head{TsNS: at, Proc: 2} }
	out, _ := export(t, play(t,
		traces.BatchFetch{Head: h(math.MinInt64), WaitNS: math.MaxInt64, FetchNS: math.MaxInt64, PutNS: math.MaxInt64},
		traces.BatchFetch{Head: h(25 * ms), WaitNS: 25 * ms, FetchNS: -5, CollateNS: math.MinInt64},
		traces.BatchFetch{Head: h(math.MaxInt64), FetchNS: math.MaxInt64},
		traces.BatchPut{Head: traces.Head{TsNS: 5, Proc: 1}, Loader: 1, DurNS: math.MaxInt64},
		traces.BatchNext{Head: traces.Head{TsNS: 1, Proc: 1}, Loader: 9, Status: "ok", CallNS: math.MaxInt64},
		traces.BatchNext{Head: traces.Head{TsNS: -1, Proc: 77}, Loader: 9, Status: "ok"},
	))
	draw(t, out)
}

func TestNothing(t *testing.T) {
	run := detecttest.NewRun(t)
	run.Process(-1, 0)
	run.Seal()
	r, err := analyze.Run(run.Open(t), nil, perfetto.Sources...)
	if err != nil {
		t.Fatal(err)
	}
	if err := perfetto.Write(new(bytes.Buffer), r); !errors.Is(err, perfetto.ErrNothing) {
		t.Errorf("%v, want %v", err, perfetto.ErrNothing)
	}
}

func export(t *testing.T, run *traces.Run) ([]byte, *analyze.Result) {
	t.Helper()
	r, err := analyze.Run(run, analyze.Rules, perfetto.Sources...)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := perfetto.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), r
}

// draw reads a trace as the UI does, by the numbers of perfetto_trace.proto that it
// knows, and fails where slices of a track are not nested or time goes back.
func draw(t *testing.T, trace []byte) drawn {
	t.Helper()
	d := drawn{map[string][][2]float64{}, map[string][]int64{}, map[string]float64{}, map[uint64][]string{}}
	tracks, names := map[uint64]string{}, map[uint64]string{}
	type open struct {
		name string
		at   uint64
	}
	opened, last := map[uint64][]open{}, map[uint64]uint64{}
	for _, packet := range fields(t, trace)[1] {
		p := fields(t, packet.bytes)
		for _, track := range p[60] {
			f := fields(t, track.bytes)
			name := f.text(2)
			for _, process := range f[3] {
				name = fields(t, process.bytes).text(6)
			}
			tracks[f.number(1)] = name
		}
		for _, interned := range p[12] {
			for _, name := range fields(t, interned.bytes)[2] {
				f := fields(t, name.bytes)
				names[f.number(1)] = f.text(2)
			}
		}
		for _, e := range p[11] {
			f, at := fields(t, e.bytes), p.number(8)
			track, name := f.number(11), names[f.number(10)]
			switch f.number(9) {
			case 1:
				opened[track] = append(opened[track], open{name, at})
			case 2:
				list := opened[track]
				if len(list) != 1 || at < list[0].at || list[0].at < last[track] {
					t.Fatalf("track %s: slice %v ends at %d, the last one at %d", tracks[track], list, at, last[track])
				}
				opened[track], last[track] = nil, at
				whole := tracks[track] + "/" + list[0].name
				d.slices[whole] = append(d.slices[whole], [2]float64{float64(list[0].at) / ms, float64(at) / ms})
			case 3:
				d.instants[tracks[track]+"/"+name] = float64(at) / ms
			case 4:
				d.counters[tracks[track]] = append(d.counters[tracks[track]], int64(f.number(30)))
			default:
				t.Fatalf("event of type %d", f.number(9))
			}
			for _, id := range f[47] {
				d.flows[id.n] = append(d.flows[id.n], name)
			}
			for _, id := range f[48] {
				d.flows[id.n] = append(d.flows[id.n], name+" (end)")
			}
		}
	}
	for track, list := range opened {
		if len(list) > 0 {
			t.Errorf("track %s: %v does not end", tracks[track], list)
		}
	}
	return d
}

type value struct {
	n     uint64
	bytes []byte
}

type message map[protowire.Number][]value

func (m message) number(n protowire.Number) uint64 {
	if len(m[n]) == 0 {
		return 0
	}
	return m[n][0].n
}

func (m message) text(n protowire.Number) string {
	if len(m[n]) == 0 {
		return ""
	}
	return string(m[n][0].bytes)
}

func fields(t *testing.T, b []byte) message {
	t.Helper()
	all := message{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		var v value
		switch kind {
		case protowire.VarintType:
			v.n, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v.n, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(b)
		default:
			t.Fatalf("field %d of type %d", number, kind)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		all[number] = append(all[number], v)
		b = b[n:]
	}
	return all
}

package otlp

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

const ms = 1_000_000

func at(t int64) traces.Head { return traces.Head{TsNS: t * ms} }

// backend keeps what it is sent. It knows spans by their ids, as a real one does.
type backend struct {
	mu      sync.Mutex
	spans   map[string]*pb.Span
	doubles int
	points  map[string]int // of each metric
	metrics []*metricdata.ResourceMetrics
	logs    []sdklog.Record
	refuse  func(kind signal, nth int) error // nil: takes all
	nth     int
}

func newBackend() *backend { return &backend{spans: map[string]*pb.Span{}, points: map[string]int{}} }

func (b *backend) asked(kind signal) error {
	b.nth++
	if b.refuse == nil {
		return nil
	}
	return b.refuse(kind, b.nth)
}

func (b *backend) sink() sink {
	return sink{
		traces: func(_ context.Context, all []*pb.ResourceSpans) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if err := b.asked(spans); err != nil {
				return err
			}
			for _, s := range all[0].ScopeSpans[0].Spans {
				if b.spans[string(s.SpanId)] != nil {
					b.doubles++
				}
				b.spans[string(s.SpanId)] = s
			}
			return nil
		},
		metrics: func(_ context.Context, m *metricdata.ResourceMetrics) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if err := b.asked(points); err != nil {
				return err
			}
			b.metrics = append(b.metrics, m)
			for _, m := range m.ScopeMetrics[0].Metrics {
				b.points[m.Name] += pointsOf(m.Data)
			}
			return nil
		},
		logs: func(_ context.Context, all []sdklog.Record) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.logs = append(b.logs, all...)
			return b.asked(records)
		},
	}
}

func pointsOf(data metricdata.Aggregation) int {
	switch d := data.(type) {
	case metricdata.Gauge[int64]:
		return len(d.DataPoints)
	case metricdata.Gauge[float64]:
		return len(d.DataPoints)
	case metricdata.Sum[int64]:
		return len(d.DataPoints)
	case metricdata.Histogram[float64]:
		return len(d.DataPoints)
	}
	return 0
}

// send sends a run to the backend.
func (b *backend) send(t *testing.T, r *analyze.Result, o Options) *Told {
	t.Helper()
	s := newSender(context.Background(), 0, 1)
	if err := feed(r, o, b.sink(), s, nil); err != nil {
		t.Fatal(err)
	}
	return s.all()
}

func (b *backend) named(name string) (all []*pb.Span) {
	for _, s := range b.spans {
		if s.Name == name {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *pb.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	return all
}

// play is two batches of a process with one worker, and what more rows say; times are in ms after 12.
func play(t *testing.T, more func(run *detecttest.Run)) *detecttest.Run { return playRank(t, -1, more) }

func playRank(t *testing.T, rank int, more func(run *detecttest.Run)) *detecttest.Run {
	run := detecttest.NewRun(t)
	main := run.Process(rank, 2)
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
		run.Add(main.Proc, traces.BatchNext{Head: at(begin + 8), Loader: 1, Batch: i, Worker: -2, Status: "ok", CallNS: (begin + 3) * ms,
			ArrivedNS: (begin + 7) * ms, Steps: uint64(i), Grad: true, Optimizer: 1})
	}
	if more != nil {
		more(run)
	}
	return run
}

func stop(run *detecttest.Run) {
	run.Add(1, traces.BatchNext{Head: at(50), Loader: 1, Batch: 1<<32 - 1, Worker: -2, Status: "stop", CallNS: 49 * ms, Steps: 2, Grad: true, Optimizer: 1})
	run.Add(2, traces.Memory{Head: at(30), Rss: 100 << 20, PrivateDirty: 7 << 20, PrivateClean: 1 << 20, Source: "smaps_rollup"})
	run.Add(2, traces.Exit{Head: at(51), ExitCode: -1, Signal: 9, Source: "kernel"})
	run.Seal()
}

func judged(t *testing.T, run *traces.Run) *analyze.Result {
	t.Helper()
	r, err := analyze.Run(run, analyze.Rules, Sources...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func recorded(t *testing.T, name string) *analyze.Result {
	t.Helper()
	archive, err := zip.OpenReader("../../detect/" + name + "/testdata/bad.dptrace.zip")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { archive.Close() })
	run, err := traces.OpenFS(archive, ".")
	if err != nil {
		t.Fatal(err)
	}
	return judged(t, run)
}

// The stages of a batch, in ms after the first one's indices were drawn.
func TestBatch(t *testing.T) {
	b := newBackend()
	told := b.send(t, judged(t, play(t, stop).Open(t)), Options{Sample: 1})
	if told.Batches != 2 || told.Signals[spans] != (Count{Sent: 17, Delivered: 17}) { // two batches of eight, and their pass
		t.Errorf("told %+v", told)
	}
	roots := b.named("batch")
	if len(roots) != 2 {
		t.Fatalf("%d batches", len(roots))
	}
	zero := roots[0].StartTimeUnixNano
	for name, want := range map[string][2]uint64{
		"batch": {0, 21_500_000}, "index": {0, 500_000}, "index_queue": {500_000, 8_500_000}, "fetch": {8_500_000, 13_500_000},
		"collate": {13_500_000, 14_500_000}, "result_queue": {14_500_000, 15_500_000}, "wait": {11_500_000, 16_500_000}, "step": {16_500_000, 21_500_000},
	} {
		s := b.named(name)[0]
		if got := [2]uint64{s.StartTimeUnixNano - zero, s.EndTimeUnixNano - zero}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if !bytes.Equal(s.TraceId, roots[0].TraceId) || name != "batch" && !bytes.Equal(s.ParentSpanId, roots[0].SpanId) {
			t.Errorf("%s is not of the batch", name)
		}
	}
	pass := b.named("pass")[0]
	if link := roots[0].Links[0]; !bytes.Equal(link.TraceId, pass.TraceId) || !bytes.Equal(link.SpanId, pass.SpanId) {
		t.Error("the batch does not lead to its pass")
	}
	if told.Signals[points].Sent == 0 || b.points[privateBytes.Name] != 1 || b.points[residentBytes.Name] != 1 || b.points[queueDepth.Name] != 1 {
		t.Errorf("points: %v", b.points)
	}
}

// Exporting twice makes nothing twice; each finding is on a batch that proves it, and its log record leads there.
func TestFindings(t *testing.T) {
	r := recorded(t, "rngduplicateworkers")
	b := newBackend()
	b.send(t, r, Options{Sample: 0})
	first, logs := len(b.spans), len(b.logs)
	b.send(t, r, Options{Sample: 1})
	all := len(b.spans)
	b.send(t, r, Options{Sample: 1})
	if len(b.spans) != all || b.doubles != first+all {
		t.Errorf("%d spans, then %d, then %d; %d known before", first, all, len(b.spans), b.doubles)
	}
	if first == 0 || first >= all {
		t.Errorf("%d of %d spans are of a sample of none", first, all)
	}
	if logs != len(r.Findings) {
		t.Fatalf("%d log records of %d findings", logs, len(r.Findings))
	}
	id := b.logs[0].TraceID()
	found := false
	for _, root := range b.named("batch") {
		for _, e := range root.Events {
			found = found || e.Name == "dptrace.finding" && bytes.Equal(root.TraceId, id[:])
		}
	}
	if !found {
		t.Errorf("no batch has the finding of %s", b.logs[0].Body().AsString())
	}
	uid := func(r sdklog.Record) string { return strings.Join(attributesOf(r, "log.record.uid"), "") }
	if uid(b.logs[0]) == "" || uid(b.logs[0]) != uid(b.logs[logs]) {
		t.Errorf("the finding is %q, then %q", uid(b.logs[0]), uid(b.logs[logs]))
	}
}

// Exemplars lead to spans that were sent, whatever the sample.
func TestExemplars(t *testing.T) {
	for _, sample := range []float64{0, .5, 1} {
		b := newBackend()
		b.send(t, recorded(t, "rngduplicateworkers"), Options{Sample: sample})
		n := 0
		for _, m := range b.metrics {
			for _, m := range m.ScopeMetrics[0].Metrics {
				h, _ := m.Data.(metricdata.Histogram[float64])
				for _, p := range h.DataPoints {
					for _, e := range p.Exemplars {
						n++
						if s := b.spans[string(e.SpanID)]; s == nil || !bytes.Equal(s.TraceId, e.TraceID) {
							t.Errorf("sample %g: an exemplar leads nowhere", sample)
						}
					}
				}
			}
		}
		if n == 0 {
			t.Errorf("sample %g: no exemplar", sample)
		}
	}
}

// What does not arrive is counted, by what the server says, and the next export completes it.
func TestRefused(t *testing.T) {
	r := judged(t, play(t, stop).Open(t))
	for name, c := range map[string]struct {
		err  error
		want Count
	}{
		"nobody there":   {errors.New("failed to send to http://x/v1/traces: 500 Internal (body: no)"), Count{Sent: 17, Undelivered: 17}},
		"a part refused": {errors.New("OTLP partial success: too (2) old (5 spans rejected)"), Count{Sent: 17, Delivered: 12, Rejected: 5}},
		"all refused":    {errors.New("OTLP partial success: no (17 spans rejected)"), Count{Sent: 17, Rejected: 17}},
	} {
		b := newBackend()
		b.refuse = func(kind signal, _ int) error {
			if kind == spans {
				return c.err
			}
			return nil
		}
		told := b.send(t, r, Options{Sample: 1})
		if told.Signals[spans] != c.want || told.Complete() {
			t.Errorf("%s: %+v", name, told.Signals[spans])
		}
		b.refuse = nil
		if told := b.send(t, r, Options{Sample: 1}); !told.Complete() || len(b.spans) != 17 {
			t.Errorf("%s: then %d spans of 17", name, len(b.spans))
		}
	}
}

// What a server has no place for is no failure beside what it took; that it has none for spans is one.
func TestForeign(t *testing.T) {
	r := judged(t, play(t, stop).Open(t))
	missing := errors.New("failed to send to http://x/v1/x: 404 Not Found (body: 404 page not found)")
	for _, c := range []struct {
		of       []signal
		complete bool
	}{{[]signal{points}, true}, {[]signal{spans}, false}, {[]signal{spans, points}, false}} {
		b := newBackend()
		b.refuse = func(kind signal, _ int) error {
			if slices.Contains(c.of, kind) {
				return missing
			}
			return nil
		}
		if told := b.send(t, r, Options{Sample: 1}); told.Complete() != c.complete {
			t.Errorf("no place for %v: complete %v", c.of, told.Complete())
		}
	}
}

// A follower that sees the trace grow sends each span once, all of them in the end, also if the endpoint was away
// meanwhile; an export of the trace afterwards brings no span more.
func TestFollow(t *testing.T) {
	for name, away := range map[string]int{"there": 0, "away at first": 1} {
		b := newBackend()
		b.refuse = func(_ signal, nth int) error {
			if nth <= away {
				return errors.New("Post: connection refused")
			}
			return nil
		}
		live := &Follower{sender: newSender(context.Background(), 0, 1), live: &progress{all: map[name_]*sent{}}, options: Options{Sample: 1}}
		look := func(r *analyze.Result, last bool) {
			live.live.ended, live.live.stopped = last, map[name_]bool{}
			live.sender.reset()
			if err := feed(r, live.options, b.sink(), live.sender, live.live); err != nil {
				t.Fatal(err)
			}
		}
		run := play(t, nil)
		if err := run.W.Flush(); err != nil {
			t.Fatal(err)
		}
		half, err := traces.Open(run.Dir)
		if err != nil {
			t.Fatal(err)
		}
		look(judged(t, half), false)
		if n := len(b.named("batch")); n != 1 && away == 0 {
			t.Errorf("%s: %d batches are over, want 1", name, n)
		}
		stop(run)
		whole := judged(t, run.Open(t))
		look(whole, true)
		if len(b.spans) != 17 || b.doubles != 0 {
			t.Errorf("%s: %d spans of 17, %d twice", name, len(b.spans), b.doubles)
		}
		if told := live.sender.all(); !told.Complete() || told.Batches != 2 {
			t.Errorf("%s: told %+v", name, told)
		}
		b.send(t, whole, Options{Sample: 1})
		if len(b.spans) != 17 {
			t.Errorf("%s: an export makes %d spans of 17", name, len(b.spans))
		}
	}
}

// name_ is the type, where name is a variable.
type name_ = name

// Traces that are cut, have gaps, or no batch.
func TestBroken(t *testing.T) {
	t.Run("nothing", func(t *testing.T) {
		run := detecttest.NewRun(t)
		run.Process(-1, 0)
		run.Seal()
		if _, err := Discard(judged(t, run.Open(t)), Options{Sample: 1}); !errors.Is(err, ErrNothing) {
			t.Errorf("%v, want %v", err, ErrNothing)
		}
	})
	t.Run("cut", func(t *testing.T) { // the worker's last fetch was never delivered: it died, or the recorder did
		b := newBackend()
		b.send(t, judged(t, play(t, func(run *detecttest.Run) {
			run.Add(1, traces.BatchPut{Head: at(45), Loader: 1, Batch: 2, Indices: []int64{1}})
			run.Add(2, traces.BatchFetch{Head: at(46), Batch: 2, Fetch: 2, FetchNS: ms, Samples: 4})
			run.Add(2, traces.Exit{Head: at(51), ExitCode: -1, Signal: 9, Source: "kernel"})
		}).Open(t)), Options{Sample: 1})
		if n := len(b.named("batch")); n != 3 || len(b.named("wait")) != 2 || len(b.named("step")) != 1 {
			t.Errorf("%d batches, %d deliveries, %d steps", n, len(b.named("wait")), len(b.named("step")))
		}
	})
	t.Run("torn", func(t *testing.T) {
		run := play(t, stop)
		run.Open(t)
		files, err := filepath.Glob(run.Dir + "/*/batch_fetch.*.arrows")
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if err := os.Truncate(files[0], 1000); err != nil {
			t.Fatal(err)
		}
		opened, err := traces.Open(run.Dir)
		if err != nil {
			t.Fatal(err)
		}
		b := newBackend()
		b.send(t, judged(t, opened), Options{Sample: 1})
		if len(b.named("batch")) != 2 || len(b.named("wait")) != 2 || len(b.named("fetch")) != 0 {
			t.Errorf("%d batches, %d fetches", len(b.named("batch")), len(b.named("fetch")))
		}
	})
	t.Run("hostile times", func(t *testing.T) {
		b := newBackend()
		b.send(t, judged(t, play(t, func(run *detecttest.Run) {
			run.Add(2, traces.BatchFetch{Head: traces.Head{TsNS: math.MinInt64}, WaitNS: math.MaxInt64, FetchNS: math.MaxInt64, PutNS: math.MaxInt64, Batch: 7, Samples: 1})
			run.Add(2, traces.BatchFetch{Head: traces.Head{TsNS: math.MaxInt64}, FetchNS: math.MaxInt64, Batch: 8, Samples: 1})
			run.Add(1, traces.BatchNext{Head: traces.Head{TsNS: 1}, Loader: 9, Status: "ok", CallNS: math.MaxInt64})
			stop(run)
		}).Open(t)), Options{Sample: 1})
		for _, s := range b.spans {
			if s.EndTimeUnixNano < s.StartTimeUnixNano {
				t.Errorf("%s ends %d ns before it begins", s.Name, s.StartTimeUnixNano-s.EndTimeUnixNano)
			}
		}
	})
}

// Two ranks of one boot are on one clock, and their batches are two traces each.
func TestRanks(t *testing.T) {
	run := detecttest.NewRun(t)
	run.Meta("started_ns", "1795000000000000000")
	for rank := range 2 {
		p := run.Process(rank, 2)
		run.Add(p.Proc, traces.Loader{Head: at(10), Loader: 1, Length: 8, BatchSize: 4, File: "/home/me/train.py", Line: 7})
		run.Add(p.Proc, traces.Pass{Head: at(10), Loader: 1, Phase: "begin"})
		run.Add(p.Proc, traces.BatchFetch{Head: at(int64(20 + rank)), Loader: 1, Worker: -1, FetchNS: ms, Samples: 4})
		run.Add(p.Proc, traces.BatchNext{Head: at(int64(22 + rank)), Loader: 1, Worker: -1, Status: "ok", CallNS: int64(19+rank) * ms})
	}
	run.Seal()
	b := newBackend()
	b.send(t, judged(t, run.Open(t)), Options{Sample: 1})
	roots := b.named("batch")
	if len(roots) != 2 || bytes.Equal(roots[0].TraceId, roots[1].TraceId) || roots[1].StartTimeUnixNano-roots[0].StartTimeUnixNano != ms {
		t.Errorf("roots: %v", roots)
	}
	for i, root := range roots {
		ok := slices.ContainsFunc(root.Attributes, func(a *common.KeyValue) bool { return a.Key == "dptrace.rank" })
		if !ok {
			t.Errorf("the batch of rank %d does not say so", i)
		}
	}
}

// Slow ones are told by their magnitude only where there are enough to compare with.
func TestSlow(t *testing.T) {
	var r ranks
	for i := range 1000 {
		if slow := r.high(int64(ms + i)); slow && i > 0 {
			t.Fatalf("number %d of equals is slow", i)
		}
	}
	if !r.high(3 * ms) {
		t.Error("three times as long is not slow")
	}
	if classOf(math.MaxInt64) >= len(r.classes) {
		t.Error("a long time has no class")
	}
}

func attributesOf(r sdklog.Record, key string) (all []string) {
	r.WalkAttributes(func(a attribute.KeyValue) bool {
		if string(a.Key) == key {
			all = append(all, a.Value.AsString())
		}
		return true
	})
	return all
}

package otlp

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/traces"
)

// toDevice copies in the step of each batch of play: twice, with a pause between them.
func toDevice(run *detecttest.Run, steps ...int64) {
	for _, delivered := range steps {
		run.Add(1, traces.Copy{Head: at(delivered + 1), Main: true, Function: "cuMemcpyHtoDAsync_v2", Direction: "to-device", Bytes: 1 << 20, CallNS: ms / 2,
			Next: "launch", GapNS: 1000})
		run.Add(1, traces.Copy{Head: at(delivered + 3), Main: true, Function: "cuMemcpyHtoDAsync_v2", Direction: "to-device", Bytes: 1 << 18, CallNS: ms / 4,
			Next: "stream-sync", GapNS: 0, NextNS: ms / 4})
	}
}

func attributes(s *pb.Span) (all []string) {
	for _, a := range s.Attributes {
		all = append(all, fmt.Sprintf("%s=%d", a.Key, a.Value.GetIntValue()))
	}
	return all
}

// All copies of a step are one span, from the first to the last one, which says how many they are and how long they took.
func TestH2D(t *testing.T) {
	b := newBackend()
	told := b.send(t, judged(t, play(t, func(run *detecttest.Run) {
		toDevice(run, 28, 38)
		stop(run)
	}).Open(t)), Options{Sample: 1})
	if told.Signals[spans] != (Count{Sent: 19, Delivered: 19}) { // one more a batch than without
		t.Errorf("told %+v", told.Signals[spans])
	}
	all, steps, roots := b.named("h2d"), b.named("step"), b.named("batch")
	if len(all) != 2 {
		t.Fatalf("%d spans", len(all))
	}
	for i, s := range all {
		began := s.StartTimeUnixNano - steps[i].StartTimeUnixNano
		if took := s.EndTimeUnixNano - s.StartTimeUnixNano; began != ms || took != 5*ms/2 {
			t.Errorf("it begins %d ns after the delivery, and takes %d ns", began, took)
		}
		if !bytes.Equal(s.ParentSpanId, roots[i].SpanId) || !bytes.Equal(s.TraceId, roots[i].TraceId) {
			t.Error("it is not of the batch")
		}
		if got := strings.Join(attributes(s), " "); got != "dptrace.copies=2 dptrace.copied_bytes=1310720 dptrace.copy_time_ns=1000000" {
			t.Errorf("it says %s", got)
		}
	}
	for _, other := range []string{"batch", "index", "index_queue", "fetch", "collate", "result_queue", "wait", "step"} {
		for _, s := range b.named(other) {
			if slices.ContainsFunc(attributes(s), func(a string) bool { return strings.Contains(a, "cop") }) {
				t.Errorf("%s says what was copied", other)
			}
		}
	}
}

// The stages' histogram has the time in copies, not that between them; bytes are counted, and in deltas once.
func TestH2DMetrics(t *testing.T) {
	for _, delta := range []bool{false, true} {
		run := play(t, func(run *detecttest.Run) { toDevice(run, 28, 38) })
		for i := range int64(3) { // the next windows: without copies, with them, and its end
			begin := 12_000 * (i + 1)
			run.Add(1, traces.BatchPut{Head: at(begin), Loader: 1, Batch: uint32(2 + i), Indices: []int64{1}})
			run.Add(2, traces.BatchFetch{Head: at(begin + 1), Batch: uint32(2 + i), Fetch: uint32(2 + i), FetchNS: ms, Samples: 4})
			run.Add(1, traces.BatchNext{Head: at(begin + 8), Loader: 1, Batch: uint32(2 + i), Worker: -2, Status: "ok", CallNS: (begin + 3) * ms})
			if i == 1 {
				toDevice(run, begin+8)
			}
		}
		run.Add(1, traces.BatchNext{Head: at(40_000), Loader: 1, Batch: 1<<32 - 1, Worker: -2, Status: "stop", CallNS: 39_000 * ms})
		run.Seal()
		b := newBackend()
		to := b.sink()
		to.delta = delta
		s := newSender(context.Background(), 0, 1)
		if err := feed(judged(t, run.Open(t)), Options{Sample: 1}, to, s, nil); err != nil {
			t.Fatal(err)
		}
		s.all()
		var moved []int64
		var times []float64
		for _, r := range b.metrics {
			for _, m := range r.ScopeMetrics[0].Metrics {
				switch d := m.Data.(type) {
				case metricdata.Sum[int64]:
					for _, p := range d.DataPoints {
						if m.Name == h2dBytes.Name {
							moved = append(moved, p.Value)
						}
					}
				case metricdata.Histogram[float64]:
					for _, p := range d.DataPoints {
						if stage, _ := p.Attributes.Value("dptrace.stage"); stage.AsString() == "h2d" {
							times = append(times, p.Sum)
						}
					}
				}
			}
		}
		const step = 1<<20 + 1<<18
		want := fmt.Sprint([]int64{2 * step, 2 * step, 3 * step, 3 * step}, []float64{.002, .003})
		if delta {
			want = fmt.Sprint([]int64{2 * step, step}, []float64{.002, .001})
		}
		if got := fmt.Sprint(moved, times); got != want {
			t.Errorf("delta %v: %s, want %s", delta, got, want)
		}
	}
}

// The spans of a recorded run have the copies that its rows have; the finding is on batches whose copies prove it.
func TestH2DRecorded(t *testing.T) {
	r := recorded(t, "copypageable")
	b := newBackend()
	b.send(t, r, Options{Sample: 1})
	var want, got stages.Copied
	for _, c := range traces.Rows[traces.Copy](r.Run) {
		if c.Direction == "to-device" {
			want = stages.Copied{Copies: want.Copies + 1, Bytes: want.Bytes + c.Bytes, NS: want.NS + stages.InCopy(&c)}
		}
	}
	all := b.named("h2d")
	for _, s := range all {
		a := s.Attributes
		got = stages.Copied{Copies: got.Copies + int(a[0].Value.GetIntValue()), Bytes: got.Bytes + a[1].Value.GetIntValue(), NS: got.NS + a[2].Value.GetIntValue()}
	}
	if got != want || len(all) != 80 {
		t.Errorf("%+v in %d spans, want %+v in 80", got, len(all), want)
	}
	events, led := 0, false
	for _, root := range b.named("batch") {
		for _, e := range root.Events {
			if e.Attributes[0].Value.GetStringValue() == "copy-pageable" {
				events++
				id := b.logs[0].TraceID()
				led = led || bytes.Equal(root.TraceId, id[:])
			}
		}
	}
	if events != 4 || !led {
		t.Errorf("%d batches have the finding, want the 4 whose copies it names; its log record leads to one: %v", events, led)
	}
}

// While a run is followed, a batch is not sent, nor counted, before the copies of its step are in the trace; and not twice.
func TestH2DFollow(t *testing.T) {
	b := newBackend()
	live := &Follower{sender: newSender(context.Background(), 0, 1), live: &progress{all: map[name]*sent{}}, options: Options{Sample: 1}}
	look := func(run *traces.Run, last bool) {
		live.live.ended, live.live.stopped = last, map[name]bool{}
		live.sender.reset()
		if err := feed(judged(t, run), live.options, b.sink(), live.sender, live.live); err != nil {
			t.Fatal(err)
		}
		live.sender.wg.Wait()
	}
	run := play(t, func(run *detecttest.Run) {
		toDevice(run, 28, 38)
		for i, delivered := range []int64{9998, 10_100} { // the first ten seconds end between them
			run.Add(2, traces.BatchFetch{Head: at(delivered - 5), Batch: uint32(2 + i), Fetch: uint32(2 + i), FetchNS: ms, Samples: 4})
			run.Add(1, traces.BatchNext{Head: at(delivered), Loader: 1, Batch: uint32(2 + i), Worker: -2, Status: "ok", CallNS: (delivered - 10) * ms})
		}
	})
	if err := run.W.Flush(); err != nil {
		t.Fatal(err)
	}
	half, err := traces.Open(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	// The second one's step lasts until the third is asked for, and more may be copied in it.
	if look(half, false); len(b.named("batch")) != 1 || len(b.named("h2d")) != 1 || b.points[stageDuration.Name] != 0 {
		t.Errorf("%d batches, %d with copies, %d points; want the first batch only", len(b.named("batch")), len(b.named("h2d")),
			b.points[stageDuration.Name])
	}
	toDevice(run, 9998)
	run.Seal()
	whole := run.Open(t)
	if look(whole, true); len(b.named("batch")) != 4 || len(b.named("h2d")) != 3 || b.doubles != 0 {
		t.Errorf("%d batches, %d with copies, %d spans twice", len(b.named("batch")), len(b.named("h2d")), b.doubles)
	}
	later := newBackend()
	later.send(t, judged(t, whole), Options{Sample: 1})
	if len(later.spans) != len(b.spans) || later.points[stageDuration.Name] != b.points[stageDuration.Name] {
		t.Errorf("%d spans and %v, of a later export %d and %v", len(b.spans), b.points, len(later.spans), later.points)
	}
}

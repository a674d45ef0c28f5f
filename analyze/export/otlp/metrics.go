package otlp

import (
	"sort"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Metric is one that is sent.
type Metric struct{ Name, Unit, Doc string }

// The metrics. docs/backends.md says the same, and docs/grafana.json asks for them; tests compare.
var (
	stageDuration = Metric{"dptrace.batch.stage.duration", "s",
		"How long delivered batches were in each stage of their way"}
	batchCount = Metric{"dptrace.loader.batches", "{batch}",
		"Batches that were delivered"}
	h2dBytes = Metric{"dptrace.loop.h2d", "By",
		"Bytes that training loops have copied to devices in their steps, in copies of more than 64 KiB (kernel tier)"}
	waitShare = Metric{"dptrace.loop.wait.share", "1",
		"Part of the training loop's time in which it waited for data"}
	queueDepth = Metric{"dptrace.loader.queue.depth", "{batch}",
		"Batches that were asked for and not delivered yet, after the last delivery"}
	residentBytes = Metric{"dptrace.process.memory.resident", "By",
		"Resident memory of the loop's process and of its workers"}
	privateBytes = Metric{"dptrace.process.memory.private", "By",
		"Memory that no other process shares (smaps_rollup)"}
	copiedBytes = Metric{"dptrace.process.memory.cow", "By",
		"Inherited memory that a forked process has copied by writing to it (kernel tier)"}
	lostRecords = Metric{"dptrace.records.lost", "{record}",
		"Records that the trace does not have"}
	findingCount = Metric{"dptrace.findings", "{finding}",
		"Findings of the report"}
)

// Metrics are all of them.
var Metrics = []Metric{stageDuration, batchCount, h2dBytes, waitShare, queueDepth, residentBytes, privateBytes, copiedBytes, lostRecords,
	findingCount}

// window is the time of the run that a data point sums up. Windows begin with the
// run: those of a second export are the same.
const window = int64(10 * time.Second)

// bounds of the stages' histograms, in seconds.
var bounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// meter sums up the batches of one source.
type meter struct {
	maker  *maker
	source *source
	delta  bool // else since the run began
	begin  int64
	sent   int64 // windows that end up to this time were sent already
	upto   int64 // the last window in ready
	rows   int64 // the last row of memory in ready
	now    int64 // the window that is being filled
	held   bool  // this time no more is added: of a batch not all is known yet
	loops  []*loopMeter
	by     map[*timeline.Loader]*loopMeter
	ready  map[Metric]metricdata.Aggregation
	points int // in ready
}

// loopMeter sums up those of one loader.
type loopMeter struct {
	attributes attribute.Set
	stages     [stages.Count]*histogram
	batches    int64
	fresh      int64 // of them in this window
	copied     int64 // bytes, as Batch.Copied
	moved      int64 // of them in this window
	wait, busy int64 // ns in this window
	depth      int64
}

// histogram of one stage.
type histogram struct {
	attributes attribute.Set
	counts     []uint64
	n          uint64
	sum        float64
	low, high  float64
	fresh      bool
	exemplars  map[int]metricdata.Exemplar[float64] // of each bucket the last, in this window
}

func newMeter(m *maker, s *source, delta bool, sent int64) *meter {
	return &meter{maker: m, source: s, delta: delta, begin: m.clock.Begin, sent: sent, by: map[*timeline.Loader]*loopMeter{},
		ready: map[Metric]metricdata.Aggregation{}}
}

func (t *meter) loop(l *timeline.Loader) *loopMeter {
	o := t.by[l]
	if o == nil {
		var attributes []attribute.KeyValue
		if l != nil {
			attributes = loaderAttributes(l)
		}
		if t.source.process.Rank >= 0 {
			attributes = append(attributes, attribute.Int("dptrace.rank", int(t.source.process.Rank)))
		}
		o = &loopMeter{attributes: attribute.NewSet(attributes...)}
		for i := range o.stages {
			with := append([]attribute.KeyValue{attribute.String("dptrace.stage", stages.Stage(i).String())}, attributes...)
			o.stages[i] = &histogram{attributes: attribute.NewSet(with...), counts: make([]uint64, len(bounds)+1),
				exemplars: map[int]metricdata.Exemplar[float64]{}}
		}
		t.by[l], t.loops = o, append(t.loops, o)
	}
	return o
}

// add a batch that was delivered. Exemplars lead to traces that are sent.
func (t *meter) add(b *stages.Batch, id traceID, kept bool) {
	at := b.Stages[stages.Wait].End
	if n := (at - t.begin) / window; n > t.now {
		t.close()
		t.now = n
	}
	o := t.loop(b.Loader)
	o.batches++
	o.fresh++
	o.wait += b.Stages[stages.Wait].NS()
	o.busy += b.Stages[stages.Step].NS()
	o.depth = int64(b.InFlight)
	o.copied += b.Copied.Bytes
	o.moved += b.Copied.Bytes
	for i, s := range b.Stages {
		if s.Known() {
			o.stages[i].add(t, float64(b.Took(stages.Stage(i)))/1e9, at, id, i+1, kept)
		}
	}
}

func (h *histogram) add(t *meter, v float64, at int64, id traceID, child int, kept bool) {
	bucket := sort.SearchFloat64s(bounds, v)
	h.counts[bucket]++
	if h.n == 0 || v < h.low {
		h.low = v
	}
	h.n, h.sum, h.high, h.fresh = h.n+1, h.sum+v, max(h.high, v), true
	if kept {
		span := id.span(child)
		h.exemplars[bucket] = metricdata.Exemplar[float64]{Time: t.time(at), Value: v, TraceID: id[:], SpanID: span[:]}
	}
}

func (t *meter) time(ts int64) time.Time { return time.Unix(0, int64(t.maker.at(ts))) }

// close ends the window: its points are ready to be sent.
func (t *meter) close() {
	closes := t.begin + (t.now+1)*window
	end, start := t.time(closes), t.time(t.begin)
	if t.delta {
		start = t.time(t.begin + t.now*window)
	}
	points, ready := t.points, t.ready
	if closes <= t.sent { // it is added up once more, and not sent
		t.ready = map[Metric]metricdata.Aggregation{}
		defer func() { t.points, t.ready = points, ready }()
	} else {
		t.upto = closes
	}
	for _, o := range t.loops {
		if o.fresh == 0 {
			continue
		}
		for _, h := range o.stages {
			if h.fresh {
				t.histogram(h, start, end)
			}
		}
		count, copied := o.batches, o.copied
		if t.delta {
			count, copied = o.fresh, o.moved
		}
		t.sum(batchCount, metricdata.DataPoint[int64]{Attributes: o.attributes, StartTime: start, Time: end, Value: count}, true)
		if copied > 0 { // else nothing, or it is not known
			t.sum(h2dBytes, metricdata.DataPoint[int64]{Attributes: o.attributes, StartTime: start, Time: end, Value: copied}, true)
		}
		t.sum(queueDepth, metricdata.DataPoint[int64]{Attributes: o.attributes, Time: end, Value: o.depth}, false)
		if all := o.wait + o.busy; all > 0 {
			t.share(metricdata.DataPoint[float64]{Attributes: o.attributes, Time: end, Value: float64(o.wait) / float64(all)})
		}
		o.fresh, o.moved, o.wait, o.busy = 0, 0, 0, 0
	}
}

func (t *meter) histogram(h *histogram, start, end time.Time) {
	p := metricdata.HistogramDataPoint[float64]{Attributes: h.attributes, StartTime: start, Time: end, Count: h.n, Sum: h.sum,
		Bounds: bounds, BucketCounts: append([]uint64(nil), h.counts...), Min: metricdata.NewExtrema(h.low), Max: metricdata.NewExtrema(h.high)}
	for _, e := range h.exemplars {
		p.Exemplars = append(p.Exemplars, e)
	}
	all, _ := t.ready[stageDuration].(metricdata.Histogram[float64])
	all.Temporality = t.temporality()
	all.DataPoints = append(all.DataPoints, p)
	t.ready[stageDuration] = all
	t.points++
	h.fresh = false
	clear(h.exemplars)
	if t.delta {
		clear(h.counts)
		h.n, h.sum, h.low, h.high = 0, 0, 0, 0
	}
}

func (t *meter) temporality() metricdata.Temporality {
	if t.delta {
		return metricdata.DeltaTemporality
	}
	return metricdata.CumulativeTemporality
}

// sum adds a point of a count that only grows, or of a value.
func (t *meter) sum(m Metric, p metricdata.DataPoint[int64], grows bool) {
	t.points++
	if !grows {
		all, _ := t.ready[m].(metricdata.Gauge[int64])
		all.DataPoints = append(all.DataPoints, p)
		t.ready[m] = all
		return
	}
	all, _ := t.ready[m].(metricdata.Sum[int64])
	all.Temporality, all.IsMonotonic = t.temporality(), true
	all.DataPoints = append(all.DataPoints, p)
	t.ready[m] = all
}

func (t *meter) share(p metricdata.DataPoint[float64]) {
	all, _ := t.ready[waitShare].(metricdata.Gauge[float64])
	all.DataPoints = append(all.DataPoints, p)
	t.ready[waitShare] = all
	t.points++
}

// take is the points that are ready, as one request; nil: there are none.
func (t *meter) take() (*metricdata.ResourceMetrics, int) {
	if t.points == 0 {
		return nil, 0
	}
	scope := metricdata.ScopeMetrics{Scope: t.source.scope}
	for _, m := range Metrics {
		if data := t.ready[m]; data != nil {
			scope.Metrics = append(scope.Metrics, metricdata.Metrics{Name: m.Name, Description: m.Doc, Unit: m.Unit, Data: data})
		}
	}
	n := t.points
	t.ready, t.points = map[Metric]metricdata.Aggregation{}, 0
	return &metricdata.ResourceMetrics{Resource: t.source.resource, ScopeMetrics: []metricdata.ScopeMetrics{scope}}, n
}

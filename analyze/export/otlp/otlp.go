// Package otlp sends a run to an OpenTelemetry backend: a trace for each batch with
// the stages of its way, findings as log records and as events on the batches that
// prove them, metrics with exemplars that lead to these traces.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Sources is what an export is made of, besides rows that are streamed.
var Sources = []collect.Any{timeline.Source}

// ErrNothing: no batch was seen.
var ErrNothing = errors.New("the trace holds no batches: nothing to send")

// Options say what to send and how.
type Options struct {
	Sample   float64       // of the batches, 0 to 1; slow ones and those that prove a finding are sent always
	Patience time.Duration // how long to repeat what does not arrive
	Version  string        // of dptrace
	Arrived  *atomic.Int64 // counts what the server has taken, while it goes on; nil: nobody asks
}

// Send sends a run to the endpoint that the OTEL_EXPORTER_OTLP_* variables name. An
// error means that nothing could be sent; what was not delivered is in Told.
// Rows are read once more and sent as they come: memory is bounded.
func Send(ctx context.Context, r *analyze.Result, o Options) (*Told, error) {
	s := newSender(ctx, o.Patience, inFlight)
	if o.Arrived != nil {
		s.taken = o.Arrived
	}
	to, err := connect(ctx, &s.calls)
	if err != nil {
		return nil, fmt.Errorf("export otlp: %w", err)
	}
	err = feed(r, o, to.sink(), s, nil)
	told := s.all()
	if closed := to.close(context.WithoutCancel(ctx)); err == nil && closed != nil {
		err = closed
	}
	if err != nil {
		return told, fmt.Errorf("export otlp: %w", err)
	}
	return told, nil
}

// sink is where requests go; nil: that signal is switched off.
type sink struct {
	traces  func(context.Context, []*pb.ResourceSpans) error
	metrics func(context.Context, *metricdata.ResourceMetrics) error
	logs    func(context.Context, []sdklog.Record) error
	delta   bool // of metrics
}

func (n *network) sink() sink {
	var s sink
	if n.traces != nil {
		s.traces = n.traces.UploadTraces
	}
	if n.metrics != nil {
		s.metrics = n.metrics.Export
		s.delta = n.metrics.Temporality(metric.InstrumentKindHistogram) == metricdata.DeltaTemporality
	}
	if n.logs != nil {
		s.logs = n.logs.Export
	}
	return s
}

// Of one request: a Collector takes 4 MiB as it is shipped, a span is 200 to 500 bytes.
const (
	mostSpans  = 4000
	mostPoints = 2000
)

// feeder makes requests of a run.
type feeder struct {
	*analyze.Result
	Options
	maker
	sink
	sender  *sender
	proofs  *proofs
	sources map[stages.Process]*source
	meters  map[stages.Process]*meter
	order   []stages.Process // of the sources
	speeds  map[*timeline.Loader]*speed
	hosts   map[*traces.Part]traces.Host
	scope   *common.InstrumentationScope
	waiting map[*source][]*pb.Span
	batches map[*source]int // whose spans are waiting
	left    map[*source]int // batches that are not in the sample
	live    *progress       // nil: all is sent at once
}

// feed sends a run, or what there is more of it than in live.
func feed(r *analyze.Result, o Options, to sink, s *sender, live *progress) error {
	f := &feeder{Result: r, Options: o, sink: to, sender: s, sources: map[stages.Process]*source{}, meters: map[stages.Process]*meter{},
		speeds: map[*timeline.Loader]*speed{}, hosts: map[*traces.Part]traces.Host{}, waiting: map[*source][]*pb.Span{}, live: live,
		batches: map[*source]int{}, left: map[*source]int{},
		scope: &common.InstrumentationScope{Name: scopeName, Version: o.Version}}
	f.clock = stages.NewClock(r.Run, r.Timeline)
	f.maker.at = func(ts int64) uint64 {
		if wall := f.clock.Wall(ts); wall > 0 {
			return uint64(wall)
		}
		return uint64(max(ts, 1))
	}
	for part, row := range traces.Rows[traces.Host](r.Run) {
		f.hosts[part] = row
	}
	var err error
	if f.proofs, err = newProofs(r, f.clock); err != nil {
		return err
	}
	if err := stages.Each(r.Run, r.Timeline, f.clock, f.batch); err != nil {
		return err
	}
	if live == nil && len(f.order) == 0 {
		return ErrNothing
	}
	if live.sealed() {
		f.passes()
	}
	for _, k := range f.order {
		f.upload(f.sources[k])
	}
	f.memory()
	if live.sealed() && len(f.order) > 0 {
		f.outcome()
	}
	for _, k := range f.order {
		f.send(f.meters[k])
	}
	return nil
}

// source is the process whose loop a batch is for.
func (f *feeder) source(p *timeline.Process) *source {
	k := stages.Process{Part: p.Part, Proc: p.Proc}
	s := f.sources[k]
	if s == nil {
		s = newSource(f.Result, p, f.hosts[p.Part], f.Version)
		f.sources[k], f.order = s, append(f.order, k)
		f.meters[k] = newMeter(&f.maker, s, f.delta, f.live.of(p).points)
	}
	return s
}

func (f *feeder) batch(b *stages.Batch) error {
	s := f.source(b.Process)
	id := s.seed.batch(b)
	proven := f.proofs.on(b, id)
	speed := f.speeds[b.Loader]
	if speed == nil {
		speed = newSpeed()
		f.speeds[b.Loader] = speed
	}
	slow := b.Delivered && speed.slow(b)
	kept := slow || len(proven) > 0 || id.kept(f.Sample)
	if b.Delivered {
		m := f.meters[stages.Process{Part: b.Process.Part, Proc: b.Process.Proc}]
		if m.held = m.held || f.live.early(b, f.Timeline.End); !m.held {
			m.add(b, id, kept && f.traces != nil)
		}
		if m.points >= mostPoints {
			f.send(m)
		}
	}
	if !f.live.due(b, f.Timeline.End) {
		return f.sender.ctx.Err()
	}
	if kept {
		f.batches[s]++
	} else {
		f.left[s]++
	}
	if kept && f.traces != nil {
		f.waiting[s] = append(f.waiting[s], f.maker.batch(s, b, id, proven)...)
	}
	f.live.reached(b)
	if len(f.waiting[s]) >= mostSpans {
		f.upload(s)
	}
	return f.sender.ctx.Err()
}

// upload sends the spans of a source that are waiting.
func (f *feeder) upload(s *source) {
	all, batches, left := f.waiting[s], f.batches[s], f.left[s]
	delete(f.waiting, s)
	delete(f.batches, s)
	delete(f.left, s)
	arrived := true
	if len(all) > 0 {
		request := []*pb.ResourceSpans{{Resource: s.proto, SchemaUrl: semconv.SchemaURL,
			ScopeSpans: []*pb.ScopeSpans{{Scope: f.scope, Spans: all, SchemaUrl: semconv.SchemaURL}}}}
		arrived = f.request(spans, len(all), func(ctx context.Context) error { return f.traces(ctx, request) })
	}
	if f.live != nil {
		f.live.settle(s.process, arrived)
	}
	if arrived {
		f.sender.counted(batches, left)
	}
}

// request sends n items. Where the run is followed it waits, and reports whether
// they need not be sent again.
func (f *feeder) request(kind signal, n int, upload func(context.Context) error) (arrived bool) {
	f.sender.send(kind, n, upload)
	return f.live == nil || f.sender.arrived(kind)
}

// send sends the points of a meter that are ready.
func (f *feeder) send(m *meter) {
	windows, rows := m.upto, m.rows
	request, n := m.take()
	if n == 0 || f.metrics == nil {
		return
	}
	if f.request(points, n, func(ctx context.Context) error { return f.metrics(ctx, request) }) && f.live != nil {
		of := f.live.of(m.source.process)
		of.points, of.memory = max(of.points, windows), max(of.memory, rows)
	}
}

// passes sends those that batches link to.
func (f *feeder) passes() {
	for _, l := range f.Timeline.Loaders {
		s := f.sources[stages.Process{Part: l.Process.Part, Proc: l.Process.Proc}]
		if s == nil {
			continue
		}
		for _, p := range l.Passes {
			f.waiting[s] = append(f.waiting[s], f.maker.pass(s, p))
		}
	}
}

// memory sends what the processes held, and what they copied.
func (f *feeder) memory() {
	if f.metrics == nil {
		return
	}
	for _, m := range f.meters {
		if f.live.sealed() {
			m.close()
		}
	}
	all := members(f.Timeline, f.meters, f.live)
	for part, r := range traces.Rows[traces.Memory](f.Run) {
		if m := all[stages.Process{Part: part, Proc: r.Proc}]; m != nil {
			m.memory(f.clock.Of(part, r.TsNS), &r)
			f.full(m.meter)
		}
	}
	for part, r := range traces.Rows[traces.Cow](f.Run) {
		if m := all[stages.Process{Part: part, Proc: r.Proc}]; m != nil {
			m.cowed(f.clock.Of(part, r.TsNS), &r, max(f.hosts[part].PageSize, 4096))
			f.full(m.meter)
		}
	}
}

func (f *feeder) full(m *meter) {
	if m.points >= mostPoints {
		f.send(m)
	}
}

// outcome sends what is known at the end only: findings and losses, in the name of
// the first source or of the one that a finding is about.
func (f *feeder) outcome() {
	end := f.clock.Of(f.Run.Parts[0], f.Timeline.End)
	f.meters[f.order[0]].outcome(end, f.Lost, f.Findings)
	if f.logs == nil {
		return
	}
	var all []sdklog.Record
	for _, p := range f.proofs.all {
		if p.at == 0 {
			p.at = end
		}
		s := f.sources[p.process]
		if s == nil {
			s = f.sourceOf(p)
		}
		all = append(all, f.maker.record(s, p)...)
	}
	if len(all) > 0 {
		f.request(records, len(all), func(ctx context.Context) error { return f.logs(ctx, all) })
	}
}

// sourceOf is that of the finding's loader, on its lowest rank.
func (f *feeder) sourceOf(p *proof) *source {
	for _, l := range f.Timeline.Loaders {
		if s := f.sources[stages.Process{Part: l.Process.Part, Proc: l.Process.Proc}]; s != nil && l.ID == p.Loader.ID {
			return s
		}
	}
	return f.sources[f.order[0]]
}

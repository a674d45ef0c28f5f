package otlp

import (
	"cmp"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// described is what the spans of one loader say of it: made once and shared.
type described struct {
	loader  []*common.KeyValue
	workers map[*timeline.WorkerPass][]*common.KeyValue
}

func (s *source) describe(l *timeline.Loader) *described {
	d := s.loops[l]
	if d != nil {
		return d
	}
	d = &described{workers: map[*timeline.WorkerPass][]*common.KeyValue{}}
	if l != nil {
		d.loader = keyValues(loaderAttributes(l))
	}
	if s.process.Rank >= 0 {
		d.loader = append(d.loader, keyValue(attribute.Int("dptrace.rank", int(s.process.Rank))))
	}
	s.loops[l] = d
	return d
}

// loaderAttributes are a loader's place and what it is for.
func loaderAttributes(l *timeline.Loader) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.Int("dptrace.loader", l.ID),
		attribute.String("dptrace.loader.at", words.Printable(l.At())),
		attribute.String("dptrace.loader.role", string(cmp.Or(l.Role, timeline.Unknown))),
		semconv.CodeFilePath(words.Printable(l.First().File)),
		semconv.CodeLineNumber(int(l.First().Line)),
	}
}

// worker is what spans of a worker's work say of it.
func (d *described) worker(w *timeline.WorkerPass) []*common.KeyValue {
	all, ok := d.workers[w]
	if !ok && w != nil {
		all = append(all, keyValue(attribute.Int("dptrace.worker", w.Number)))
		if w.Process != nil {
			all = append(all, keyValue(semconv.ProcessPID(int(w.Process.Pid))))
		}
		d.workers[w] = all
	}
	return all
}

// copied is what the span of a step's copies says of them.
func copied(c *stages.Copied) []*common.KeyValue {
	return []*common.KeyValue{integer("dptrace.copies", int64(c.Copies)), integer("dptrace.copied_bytes", c.Bytes),
		integer("dptrace.copy_time_ns", c.NS)}
}

func integer(key string, n int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}}
}

// maker makes spans. Times are on the wall clock.
type maker struct {
	clock *stages.Clock
	at    func(ts int64) uint64
}

// batch is the trace of one: its root, which says what it is, and a child for each
// stage that is known, which says no more than who has worked, and what was copied:
// attributes are most of what sending costs. All copies of a step are one span.
// findings are those that it proves.
func (m *maker) batch(s *source, b *stages.Batch, id traceID, findings []*proof) []*pb.Span {
	d := s.describe(b.Loader)
	root, rootID := m.root(s, b, id, d), id.span(0)
	for _, f := range findings {
		root.Events = append(root.Events, f.event(m))
	}
	spans := append(make([]*pb.Span, 0, stages.Count+1), root)
	for i, at := range b.Stages {
		if !at.Known() {
			continue
		}
		own := id.span(i + 1)
		var attributes []*common.KeyValue
		switch stages.Stage(i) {
		case stages.Fetch, stages.Collate:
			attributes = d.worker(b.Worker)
		case stages.H2D:
			attributes = copied(&b.Copied)
		}
		spans = append(spans, &pb.Span{TraceId: root.TraceId, SpanId: own[:], ParentSpanId: rootID[:], Name: stages.Stage(i).String(),
			Kind: pb.Span_SPAN_KIND_INTERNAL, StartTimeUnixNano: m.at(at.Begin), EndTimeUnixNano: m.at(at.End), Attributes: attributes})
	}
	return spans
}

func (m *maker) root(s *source, b *stages.Batch, id traceID, d *described) *pb.Span {
	own, pass := id.span(0), s.seed.trace(ofPass, uint64(b.Object), uint64(b.Pass))
	attributes := append(make([]*common.KeyValue, 0, len(d.loader)+6), d.loader...)
	attributes = append(attributes, integer("dptrace.pass", int64(b.Pass)), integer("dptrace.batch", int64(b.Number)))
	if b.Stages[stages.Fetch].Known() {
		attributes = append(append(attributes, integer("dptrace.samples", int64(b.Samples))), d.worker(b.Worker)...)
	}
	if !b.Delivered {
		attributes = append(attributes, keyValue(attribute.Bool("dptrace.delivered", false)))
	}
	passRoot := pass.span(0)
	return &pb.Span{TraceId: id[:], SpanId: own[:], Name: "batch", Kind: pb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: m.at(b.Begin()), EndTimeUnixNano: m.at(b.End()), Attributes: attributes,
		Links: []*pb.Span_Link{{TraceId: pass[:], SpanId: passRoot[:]}}}
}

// pass is the span of one, a trace of its own, which its batches link to.
func (m *maker) pass(s *source, p *timeline.Pass) *pb.Span {
	id := s.seed.trace(ofPass, uint64(p.Object), uint64(p.Recorded))
	own := id.span(0)
	part := s.process.Part
	attributes := append([]*common.KeyValue{}, s.describe(p.Loader).loader...)
	attributes = append(attributes, integer("dptrace.pass", int64(p.Recorded)), integer("dptrace.delivered_batches", int64(p.Delivered)))
	if p.How != "" {
		attributes = append(attributes, keyValue(attribute.String("dptrace.pass.end", words.Printable(p.How))))
	}
	begin := m.clock.Of(part, p.Begin)
	return &pb.Span{TraceId: id[:], SpanId: own[:], Name: "pass", Kind: pb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: m.at(begin), EndTimeUnixNano: m.at(max(m.clock.Of(part, p.End), begin)), Attributes: attributes}
}

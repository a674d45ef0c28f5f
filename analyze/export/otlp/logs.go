package otlp

import (
	"context"
	"encoding/hex"
	"hash/fnv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// keeper is a processor that keeps the records of a logger: the SDK makes them,
// with the resource of their source, and has no other way to get at them.
type keeper struct{ records []sdklog.Record }

func (k *keeper) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }
func (k *keeper) ForceFlush(context.Context) error                       { return nil }
func (k *keeper) Shutdown(context.Context) error                         { return nil }
func (k *keeper) OnEmit(_ context.Context, r *sdklog.Record) error {
	k.records = append(k.records, r.Clone())
	return nil
}

var severities = map[finding.Certainty]log.Severity{
	finding.Proven: log.SeverityError, finding.Likely: log.SeverityWarn, finding.Note: log.SeverityInfo,
}

// record is a finding as a log record, tied to the first batch that proves it.
func (m *maker) record(s *source, p *proof) []sdklog.Record {
	k := &keeper{}
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(s.resource), sdklog.WithProcessor(k))
	logger := provider.Logger(s.scope.Name, log.WithInstrumentationVersion(s.scope.Version), log.WithSchemaURL(s.scope.SchemaURL))
	var r log.Record
	at := time.Unix(0, int64(m.at(p.at)))
	r.SetTimestamp(at)
	r.SetObservedTimestamp(at) // not now: the record of a second export is the same
	r.SetEventName("dptrace.finding")
	r.SetSeverity(severities[p.Certainty])
	r.SetSeverityText(p.Certainty.String())
	r.SetBody(attribute.StringValue(words.Printable(p.Title)))
	r.AddAttributes(p.attributes()...)
	r.AddAttributes(attribute.String("log.record.uid", p.uid(s)))
	for key, text := range map[string]string{"evidence": p.evidence, "cost": p.Cost, "fix": p.Fix, "verify": p.Verify,
		"not_a_bug_if": p.NotABugIf, "accepted": p.Accepted} {
		if text != "" {
			r.AddAttributes(attribute.String("dptrace."+key, words.Printable(text)))
		}
	}
	ctx := context.Background()
	if p.seen {
		ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(p.trace), SpanID: trace.SpanID(p.trace.span(0)), TraceFlags: trace.FlagsSampled}))
	}
	logger.Emit(ctx, r)
	return k.records
}

// uid names the finding: log records have no other id by which a backend could
// know that it has one already.
func (p *proof) uid(s *source) string {
	h := fnv.New64a()
	for _, text := range []string{p.Rule, p.Loader.At, p.Title} {
		_, _ = h.Write([]byte(text + "\x00")) // never fails
	}
	id := s.seed.trace(ofFinding, h.Sum64(), uint64(p.Loader.ID))
	return hex.EncodeToString(id[:])
}

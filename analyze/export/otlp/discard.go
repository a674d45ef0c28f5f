package otlp

import (
	"context"
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dptrace/dptrace/analyze"
)

// Discard makes all requests of a run and sends none: what a run would be, for
// tests and benchmarks.
func Discard(r *analyze.Result, o Options) (*Told, error) {
	s := newSender(context.Background(), time.Second, inFlight)
	err := feed(r, o, sink{
		traces:  func(context.Context, []*pb.ResourceSpans) error { return nil },
		metrics: func(context.Context, *metricdata.ResourceMetrics) error { return nil },
		logs:    func(context.Context, []sdklog.Record) error { return nil },
	}, s, nil)
	return s.all(), err
}

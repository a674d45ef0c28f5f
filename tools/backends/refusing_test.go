package backends

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// proxy stands before a Collector and says no to some of the requests.
type proxy struct {
	collector.UnimplementedTraceServiceServer
	to      collector.TraceServiceClient
	n       atomic.Int64 // requests
	refused atomic.Int64 // spans
	refuse  func(p *proxy, nth int64, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error)
}

func (p *proxy) Export(ctx context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	if p.refuse != nil {
		if answer, err := p.refuse(p, p.n.Add(1), r); answer != nil || err != nil {
			return answer, err
		}
	}
	return p.to.Export(ctx, r)
}

func spansIn(r *collector.ExportTraceServiceRequest) *[]*pb.Span {
	return &r.ResourceSpans[0].ScopeSpans[0].Spans
}

// busy refuses each tenth request, and does not say that it may come again.
func busy(p *proxy, nth int64, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	if nth%10 != 3 {
		return nil, nil
	}
	p.refused.Add(int64(len(*spansIn(r))))
	return nil, status.Error(codes.ResourceExhausted, "too much")
}

// picky takes all but the first hundred spans of each fifth request.
func picky(p *proxy, nth int64, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	if nth%5 != 2 {
		return nil, nil
	}
	spans := spansIn(r)
	n := min(100, len(*spans))
	*spans = (*spans)[n:]
	if _, err := p.to.Export(context.Background(), r); err != nil {
		return nil, err
	}
	p.refused.Add(int64(n))
	return &collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: int64(n), ErrorMessage: "I do not like them"}}, nil
}

// What a server refuses is counted to the span, and the next export completes the set.
func TestRefusing(t *testing.T) {
	program(t)
	trace := recording(t, count(t))
	for name, refuse := range map[string]func(*proxy, int64, *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error){
		"RESOURCE_EXHAUSTED": busy, "a part": picky,
	} {
		t.Run(name, func(t *testing.T) {
			s := newCollector(t)
			conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			p := &proxy{to: collector.NewTraceServiceClient(conn), refuse: refuse}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			collector.RegisterTraceServiceServer(server, p)
			go func() { _ = server.Serve(l) }() // until Stop
			defer server.Stop()
			env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + l.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
				"OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none"}
			o := export(t, trace, nil, env...)
			if o.code != 1 || p.refused.Load() == 0 || o.sent-o.delivered != int(p.refused.Load()) {
				t.Errorf("exit code %d, %d of %d delivered, %d were refused", o.code, o.delivered, o.sent, p.refused.Load())
			}
			p.refuse = nil
			complete(t, s, export(t, trace, nil, env...))
		})
	}
}

package otlp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The protocols of OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	protoGRPC = "grpc"
	protoHTTP = "http/protobuf"
	protoJSON = "http/json"
)

// The official clients read their other variables themselves: OTEL_EXPORTER_OTLP_ENDPOINT,
// _HEADERS, _TIMEOUT, _COMPRESSION, _CERTIFICATE, _CLIENT_KEY, _CLIENT_CERTIFICATE, _INSECURE,
// each also with TRACES_, METRICS_ or LOGS_ before it.
func protocol(signal string) (string, error) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch p := os.Getenv(name); p {
		case "":
		case protoGRPC, protoHTTP, protoJSON:
			return p, nil
		default:
			return "", fmt.Errorf("%s=%q: it is %s, %s or %s", name, p, protoGRPC, protoHTTP, protoJSON)
		}
	}
	return protoHTTP, nil // what OpenTelemetry's specification recommends
}

// Check reports whether the variables name protocols that there are.
func Check() error {
	for _, signal := range []string{"TRACES", "METRICS", "LOGS"} {
		if _, err := protocol(signal); err != nil {
			return err
		}
	}
	return nil
}

// switchedOff reports whether a signal is not to be sent.
func switchedOff(signal string) bool { return os.Getenv("OTEL_"+signal+"_EXPORTER") == "none" }

// How long a client repeats a request by itself: it knows what a server that is
// too busy has asked for. Longer waiting is the sender's.
const (
	firstPause  = 100 * time.Millisecond
	longPause   = 2 * time.Second
	clientsPart = 8 * time.Second
)

// network is the three clients; nil where the signal is switched off.
type network struct {
	traces  otlptrace.Client
	metrics sdkmetric.Exporter
	logs    sdklog.Exporter
	calls   *calls
}

func connect(ctx context.Context, c *calls) (n *network, err error) {
	n = &network{calls: c}
	for _, signal := range []struct {
		name string
		open func(context.Context, string) error
	}{{"TRACES", n.openTraces}, {"METRICS", n.openMetrics}, {"LOGS", n.openLogs}} {
		if switchedOff(signal.name) {
			continue
		}
		p, err := protocol(signal.name)
		if err == nil {
			err = signal.open(ctx, p)
		}
		if err != nil {
			return nil, fmt.Errorf("client for %s: %w", strings.ToLower(signal.name), err)
		}
	}
	return n, nil
}

func (n *network) openTraces(ctx context.Context, protocol string) error {
	if protocol == protoGRPC {
		retry := otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longPause, MaxElapsedTime: clientsPart}
		n.traces = otlptracegrpc.NewClient(otlptracegrpc.WithRetry(retry), otlptracegrpc.WithDialOption(n.calls.option()),
			otlptracegrpc.WithMaxRequestSize(0)) // mostSpans bounds it; measuring costs as much as half of writing it
	} else {
		retry := otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longPause, MaxElapsedTime: clientsPart}
		n.traces = otlptracehttp.NewClient(otlptracehttp.WithRetry(retry))
	}
	return n.traces.Start(ctx)
}

func (n *network) openMetrics(ctx context.Context, protocol string) (err error) {
	if protocol == protoGRPC {
		retry := otlpmetricgrpc.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longPause, MaxElapsedTime: clientsPart}
		n.metrics, err = otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithRetry(retry), otlpmetricgrpc.WithDialOption(n.calls.option()))
		return err
	}
	retry := otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longPause, MaxElapsedTime: clientsPart}
	n.metrics, err = otlpmetrichttp.New(ctx, otlpmetrichttp.WithRetry(retry))
	return err
}

func (n *network) openLogs(ctx context.Context, protocol string) (err error) {
	if protocol == protoGRPC {
		retry := otlploggrpc.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longPause, MaxElapsedTime: clientsPart}
		n.logs, err = otlploggrpc.New(ctx, otlploggrpc.WithRetry(retry), otlploggrpc.WithDialOption(n.calls.option()))
		return err
	}
	retry := otlploghttp.RetryConfig{Enabled: true, InitialInterval: firstPause, MaxInterval: longPause, MaxElapsedTime: clientsPart}
	n.logs, err = otlploghttp.New(ctx, otlploghttp.WithRetry(retry))
	return err
}

func (n *network) close(ctx context.Context) error {
	var errs []error
	if n.traces != nil {
		errs = append(errs, n.traces.Stop(ctx))
	}
	if n.metrics != nil {
		errs = append(errs, n.metrics.Shutdown(ctx))
	}
	if n.logs != nil {
		errs = append(errs, n.logs.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// option sees each call of a gRPC client, those that it repeats by itself too.
func (c *calls) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, request, reply, cc, opts...)
		c.count(ctx, status.Code(err) == codes.ResourceExhausted || status.Code(err) == codes.Unavailable)
		return err
	})
}

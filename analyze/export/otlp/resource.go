package otlp

import (
	"context"
	"fmt"
	"path/filepath"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	pb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// scopeName is who has measured.
const scopeName = "github.com/dptrace/dptrace"

// source is a process with a training loop: what is sent is sent in its name, the
// spans of its workers too.
type source struct {
	process  *timeline.Process
	seed     seed
	resource *resource.Resource
	proto    *pb.Resource
	scope    instrumentation.Scope
	loops    map[*timeline.Loader]*described
}

// newSource is the source of a process. OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME go before what the trace says.
func newSource(r *analyze.Result, p *timeline.Process, host traces.Host, version string) *source {
	attributes := []attribute.KeyValue{
		semconv.ServiceName(serviceName(r.Timeline)),
		semconv.ServiceInstanceID(fmt.Sprintf("%s/%s/%d", p.Part.RunID, p.Part.Name, p.Proc)),
		semconv.ProcessPID(int(p.Pid)),
		semconv.ProcessParentPID(int(p.Ppid)),
		attribute.String("dptrace.run.id", words.Printable(p.Part.RunID)),
	}
	for key, text := range map[attribute.Key]string{
		semconv.HostNameKey: host.Hostname, semconv.OSTypeKey: "linux", semconv.HostArchKey: host.Arch,
		semconv.ProcessExecutablePathKey: p.Exe, semconv.ProcessRuntimeVersionKey: p.Python, "dptrace.torch.version": p.Torch,
	} {
		if text != "" {
			attributes = append(attributes, key.String(words.Printable(text)))
		}
	}
	if p.Python != "" {
		attributes = append(attributes, semconv.ProcessRuntimeName("cpython"))
	}
	if p.Rank >= 0 {
		attributes = append(attributes, attribute.Int("dptrace.rank", int(p.Rank)), attribute.Int("dptrace.world_size", int(p.WorldSize)))
	}
	own := resource.NewWithAttributes(semconv.SchemaURL, attributes...)
	// The errors are of variables that cannot be parsed: the SDK says so, and what could be read stays.
	users, _ := resource.New(context.Background(), resource.WithFromEnv())
	merged, err := resource.Merge(own, users)
	if err != nil {
		merged = own
	}
	s := &source{process: p, seed: newSeed(p.Part, p.Proc), resource: merged, loops: map[*timeline.Loader]*described{},
		scope: instrumentation.Scope{Name: scopeName, Version: version, SchemaURL: semconv.SchemaURL}}
	s.proto = &pb.Resource{Attributes: keyValues(merged.Attributes())}
	return s
}

// serviceName is what a run is called in a backend: the program that was recorded.
func serviceName(t *timeline.Timeline) string {
	for _, word := range t.Command {
		if filepath.Ext(word) == ".py" {
			return words.Printable(filepath.Base(word))
		}
	}
	if len(t.Command) > 0 {
		return words.Printable(filepath.Base(t.Command[0]))
	}
	return "unknown_service"
}

func keyValues(attributes []attribute.KeyValue) (all []*common.KeyValue) {
	for _, a := range attributes {
		all = append(all, keyValue(a))
	}
	return all
}

// keyValue is an attribute as OTLP writes it. Ours are texts, numbers and yes or
// no; of the user's the variables make texts.
func keyValue(a attribute.KeyValue) *common.KeyValue {
	v := &common.AnyValue{}
	switch a.Value.Type() {
	case attribute.INT64:
		v.Value = &common.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
	case attribute.BOOL:
		v.Value = &common.AnyValue_BoolValue{BoolValue: a.Value.AsBool()}
	case attribute.FLOAT64:
		v.Value = &common.AnyValue_DoubleValue{DoubleValue: a.Value.AsFloat64()}
	default:
		v.Value = &common.AnyValue_StringValue{StringValue: a.Value.AsString()}
	}
	return &common.KeyValue{Key: string(a.Key), Value: v}
}

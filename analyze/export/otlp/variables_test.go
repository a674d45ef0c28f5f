package otlp

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// taken is what a server saw.
type taken struct {
	mu       sync.Mutex
	requests int
	busy     int // how many of them it refuses
	spans    int
	resource map[string]string
	wrong    []string
}

func (s *taken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests++; s.requests <= s.busy {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if r.TLS == nil || r.Header.Get("Authorization") != "Bearer x" || r.Header.Get("Content-Encoding") != "gzip" || r.URL.Path != "/v1/traces" {
		s.wrong = append(s.wrong, r.URL.Path)
	}
	unzipped, err := gzip.NewReader(r.Body)
	if err != nil {
		s.wrong = append(s.wrong, err.Error())
		return
	}
	body, err := io.ReadAll(unzipped)
	request := &collector.ExportTraceServiceRequest{}
	if err != nil || proto.Unmarshal(body, request) != nil {
		s.wrong = append(s.wrong, "body")
		return
	}
	for _, rs := range request.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			s.resource[a.Key] = a.Value.GetStringValue()
		}
		for _, ss := range rs.ScopeSpans {
			s.spans += len(ss.Spans)
			if !strings.HasPrefix(ss.SchemaUrl, "https://opentelemetry.io/schemas/") {
				s.wrong = append(s.wrong, "schema "+ss.SchemaUrl)
			}
		}
	}
}

// The variables of OpenTelemetry are kept to: TLS with a certificate of one's own, headers, gzip, what the service is called;
// and a server that is busy is asked again.
func TestVariables(t *testing.T) {
	s := &taken{resource: map[string]string{}, busy: 2}
	server := httptest.NewTLSServer(s)
	defer server.Close()
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE": certificate, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer x",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "team=vision,host.name=other",
		"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none",
	} {
		t.Setenv(name, value)
	}
	told, err := Send(context.Background(), judged(t, play(t, stop).Open(t)), Options{Sample: 1, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.wrong) > 0 || s.spans != 17 || !told.Complete() {
		t.Errorf("%d spans, wrong: %q; told %+v", s.spans, s.wrong, told)
	}
	if told.Again != 2 {
		t.Errorf("%d requests were sent again, want 2", told.Again)
	}
	for key, want := range map[string]string{"service.name": "mine", "team": "vision", "host.name": "other"} {
		if s.resource[key] != want {
			t.Errorf("%s is %q, want %q", key, s.resource[key], want)
		}
	}
}

func TestWrongProtocol(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "udp")
	if err := Check(); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL") {
		t.Errorf("%v", err)
	}
}

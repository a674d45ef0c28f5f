package backends

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// output is what a program writes, while it writes it.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// patience is how long to wait for what must come: no figure of a good machine.
const patience = 5 * time.Minute

// server is a Collector that runs; its files are the spans that it took.
type server struct {
	folder     string
	grpc, http string // addresses
	cmd        *exec.Cmd
	starts     int
}

const config = `receivers:
  otlp:
    protocols:
      grpc: {endpoint: %s}
      http: {endpoint: %s}
exporters:
  file/traces: {path: '%s', format: proto, flush_interval: 100ms}
  file/rest: {path: '%s'}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [file/traces]}
    metrics: {receivers: [otlp], exporters: [file/rest]}
    logs: {receivers: [otlp], exporters: [file/rest]}
`

func newCollector(t *testing.T) *server {
	t.Helper()
	if os.Getenv("DPTRACE_COLLECTOR") == "" {
		t.Skip("DPTRACE_COLLECTOR is not set: this is a test of make backends")
	}
	s := &server{folder: t.TempDir(), grpc: free(t), http: free(t)}
	t.Cleanup(s.kill)
	s.start(t)
	return s
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.starts++
	file := filepath.Join(s.folder, "config.yaml")
	text := fmt.Sprintf(config, s.grpc, s.http, filepath.Join(s.folder, fmt.Sprintf("traces.%d", s.starts)), filepath.Join(s.folder, fmt.Sprintf("rest.%d", s.starts)))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := new(output)
	s.cmd = exec.Command(os.Getenv("DPTRACE_COLLECTOR"), "--config", "file:"+file)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		c, err := net.Dial("tcp", s.grpc)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the Collector does not listen: %v\n%s", err, out)
		}
	}
}

// begun waits for the first spans.
func (s *server) begun(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(s.spans(t)) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no span has arrived")
		}
	}
}

func (s *server) signal(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

func (s *server) kill() {
	s.signal(syscall.SIGKILL)
	_ = s.cmd.Wait()
}

// stop lets it write what it has.
func (s *server) stop() {
	s.signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// spans are the ids of what was taken, and how often. A file that was cut by SIGKILL ends in the middle.
func (s *server) spans(t *testing.T) map[[8]byte]int {
	t.Helper()
	all := map[[8]byte]int{}
	files, err := filepath.Glob(filepath.Join(s.folder, "traces.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for {
			m := next(t, f)
			if m == nil {
				break
			}
			for _, rs := range m.ResourceSpans {
				for _, ss := range rs.ScopeSpans {
					for _, span := range ss.Spans {
						all[[8]byte(span.SpanId)]++
					}
				}
			}
		}
		f.Close()
	}
	return all
}

// next reads one message of the file exporter: its length in four bytes before it.
func next(t *testing.T, r io.Reader) *collector.ExportTraceServiceRequest {
	t.Helper()
	var length [4]byte
	_, err := io.ReadFull(r, length[:])
	if err == nil {
		b := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err = io.ReadFull(r, b); err == nil {
			m := &collector.ExportTraceServiceRequest{}
			if err := proto.Unmarshal(b, m); err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return nil
}

func (s *server) overGRPC() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + s.grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}
}

func (s *server) overHTTP() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + s.http, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}
}

// complete: the server has each span that was sent, and no other.
func complete(t *testing.T, s *server, o told) {
	t.Helper()
	if o.code != 0 || o.delivered != o.sent {
		t.Errorf("exit code %d, %d of %d delivered", o.code, o.delivered, o.sent)
	}
	s.stop()
	if got := len(s.spans(t)); got != o.sent {
		t.Errorf("%d spans have arrived, want %d", got, o.sent)
	}
}

// How a Collector is reached, and what becomes of it meanwhile.
func TestCollector(t *testing.T) {
	program(t)
	n := count(t)
	trace := recording(t, n)
	for _, way := range []struct {
		name string
		env  func(*server) []string
	}{{"grpc", (*server).overGRPC}, {"http", (*server).overHTTP}} {
		t.Run(way.name, func(t *testing.T) {
			s := newCollector(t)
			o := export(t, trace, nil, way.env(s)...)
			if o.sent < n-n/100 {
				t.Errorf("%d spans were sent of a trace of %d", o.sent, n)
			}
			complete(t, s, o)
			for id, times := range s.spans(t) {
				if times != 1 {
					t.Fatalf("span %x has arrived %d times", id, times)
				}
			}
		})
		t.Run(way.name+", gzip, twice", func(t *testing.T) {
			s := newCollector(t)
			env := append(way.env(s), "OTEL_EXPORTER_OTLP_COMPRESSION=gzip")
			first, second := export(t, trace, nil, env...), export(t, trace, nil, env...)
			if first.sent != second.sent {
				t.Errorf("%d spans at first, then %d", first.sent, second.sent)
			}
			complete(t, s, second)
		})
		t.Run(way.name+", stopped for a while", func(t *testing.T) {
			s := newCollector(t)
			o := export(t, trace, func() {
				s.begun(t)
				s.signal(syscall.SIGSTOP)
				time.Sleep(15 * time.Second)
				s.signal(syscall.SIGCONT)
			}, way.env(s)...)
			complete(t, s, o)
		})
		t.Run(way.name+", killed and started again", func(t *testing.T) {
			s := newCollector(t)
			o := export(t, trace, func() {
				s.begun(t)
				s.kill()
				time.Sleep(2 * time.Second)
				s.start(t)
			}, way.env(s)...)
			if o.delivered != o.sent {
				t.Errorf("%d of %d delivered", o.delivered, o.sent)
			}
			// What the one that was killed had taken, and not written, no client can know of: the second export brings it.
			complete(t, s, export(t, trace, nil, way.env(s)...))
		})
	}
}

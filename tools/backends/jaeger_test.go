package backends

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ranks is a training of two processes, whose workers draw the same numbers.
const ranks = `
import os, sys
import numpy as np, torch
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return torch.tensor(self.rng.random(4), dtype=torch.float32)

def train():
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        for batch in DataLoader(Noisy(), batch_size=4, num_workers=2):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()

if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        import subprocess
        children = [subprocess.Popen([sys.executable, __file__], env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="2")) for r in range(2)]
        sys.exit(max(c.wait() for c in children))
`

// A real run of two ranks is found in Jaeger by service, rank, loader and finding; as many spans come out as went in.
func TestJaeger(t *testing.T) {
	jaeger, python := os.Getenv("DPTRACE_JAEGER"), os.Getenv("DPTRACE_PYTHON")
	if jaeger == "" || python == "" {
		t.Skip("DPTRACE_JAEGER is not set: this is a test of make backends")
	}
	folder := t.TempDir()
	trace := filepath.Join(folder, "two.dptrace")
	file := filepath.Join(folder, "train.py")
	if err := os.WriteFile(file, []byte(ranks), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program(t), "record", "--quiet", "--tier", "hook", "-o", trace, "--", python, file).CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	query := startJaeger(t, jaeger)
	o := export(t, trace, nil, "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_SERVICE_NAME=two ranks")
	if o.code != 0 || o.delivered != o.sent {
		t.Errorf("exit code %d, %d of %d delivered", o.code, o.delivered, o.sent)
	}
	for deadline := time.Now().Add(patience); spansOf(find(t, query, "")) < o.sent && time.Now().Before(deadline); {
		time.Sleep(200 * time.Millisecond) // it answers before it has stored them
	}
	if services := ask(t, query+"/api/v3/services"); !strings.Contains(services, "two ranks") {
		t.Errorf("services: %s", services)
	}
	all := find(t, query, "")
	if got := spansOf(all); got != o.sent {
		t.Errorf("%d spans come out, %d went in", got, o.sent)
	}
	byRank := 0
	for rank := range 2 {
		n := len(find(t, query, fmt.Sprintf(`{"dptrace.rank":"%d"}`, rank)))
		if n == 0 || n == len(all) {
			t.Errorf("%d of %d traces are of rank %d", n, len(all), rank)
		}
		byRank += n
	}
	if byRank != len(all) {
		t.Errorf("%d traces have a rank, of %d", byRank, len(all))
	}
	if n := len(find(t, query, `{"code.file.path":"`+file+`"}`)); n != len(all) {
		t.Errorf("%d of %d traces are of the loader's file", n, len(all))
	}
	if n := len(find(t, query, `{"dptrace.rule":"rng-duplicate-workers"}`)); n == 0 || n == len(all) {
		t.Errorf("%d of %d traces prove the finding", n, len(all))
	}
	if second := export(t, trace, nil, "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_SERVICE_NAME=two ranks"); second.sent != o.sent {
		t.Errorf("%d spans over gRPC, %d over HTTP", second.sent, o.sent)
	}
	time.Sleep(2 * time.Second) // for what should not come
	if again := find(t, query, ""); len(again) != len(all) || spansOf(again) != o.sent {
		t.Errorf("%d traces of %d spans after a second export, %d of %d before", len(again), spansOf(again), len(all), o.sent)
	}
}

// startJaeger starts it at its own ports, and gives the address of its query API.
func startJaeger(t *testing.T, path string) string {
	t.Helper()
	out := new(output)
	cmd := exec.Command(path)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	})
	const query = "http://localhost:16686"
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		if r, err := http.Get(query + "/api/v3/services"); err == nil {
			r.Body.Close()
			return query
		} else if time.Now().After(deadline) {
			t.Fatalf("Jaeger does not answer: %v\n%s", err, out)
		}
	}
}

func ask(t *testing.T, address string) string {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v %s", address, r.Status, err, text)
	}
	return string(text)
}

// traceOf is what Jaeger's own HTTP API says of a trace, as far as it is looked at.
type traceOf struct {
	TraceID string
	Spans   []struct{ SpanID string }
}

// find asks for traces of the last hour with some tags (JSON; "" any).
func find(t *testing.T, query, tags string) []traceOf {
	t.Helper()
	v := url.Values{"service": {"two ranks"}, "limit": {"1500"}, "lookback": {"1h"}}
	v.Set("start", fmt.Sprint(time.Now().Add(-time.Hour).UnixMicro()))
	v.Set("end", fmt.Sprint(time.Now().UnixMicro()))
	if tags != "" {
		v.Set("tags", tags)
	}
	var answer struct{ Data []traceOf }
	if err := json.Unmarshal([]byte(ask(t, query+"/api/traces?"+v.Encode())), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Data
}

// spansOf counts spans by their ids.
func spansOf(all []traceOf) int {
	ids := map[string]bool{}
	for _, trace := range all {
		for _, span := range trace.Spans {
			ids[trace.TraceID+span.SpanID] = true
		}
	}
	return len(ids)
}

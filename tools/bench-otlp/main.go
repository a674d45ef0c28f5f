// Bench-otlp measures for tools/bench what sending a run to OpenTelemetry costs:
// spans per second of CPU time, of reading rows, making spans and sending them,
// once the run is judged. A server that throws all away is a process of its own.
//
// usage: bench-otlp BATCHES
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/export/otlp"
	"github.com/dptrace/dptrace/traces"
)

func main() {
	run := bench
	if len(os.Args) == 2 && os.Args[1] == sinkRole {
		run = func([]string) error { return sink() }
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-otlp:", err)
		os.Exit(1)
	}
}

// sinkRole is the argument of the server's process.
const sinkRole = "sink"

func bench(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: bench-otlp BATCHES")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("batches: %w", err)
	}
	folder, err := os.MkdirTemp("", "bench-otlp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := write(folder+"/bench.dptrace", n); err != nil {
		return err
	}
	run, err := traces.Open(folder + "/bench.dptrace")
	if err != nil {
		return err
	}
	result, err := analyze.Run(run, nil, otlp.Sources...)
	if err != nil {
		return err
	}
	server := exec.Command("/proc/self/exe", sinkRole)
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Kill() }()
	ways, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	for _, way := range strings.Fields(ways) {
		protocol, address, _ := strings.Cut(way, "=")
		if err := measure(result, protocol, address); err != nil {
			return err
		}
	}
	return nil
}

func measure(r *analyze.Result, protocol, address string) error {
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + address,
		"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if name := os.Getenv("CPUPROFILE"); name != "" {
		f, err := os.Create(name + "." + strings.ReplaceAll(protocol, "/", "-"))
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	before, begin := used(), time.Now()
	told, err := otlp.Send(context.Background(), r, otlp.Options{Sample: 1, Patience: time.Minute})
	if err != nil {
		return err
	}
	if !told.Complete() {
		return fmt.Errorf("%s: %s", protocol, strings.Join(told.Lines(), "; "))
	}
	cpu, spans := used()-before, float64(told.Signals[0].Delivered)
	fmt.Printf("otlp, %s: %.0f spans in %.2f s of CPU time, %.2f s in all: %.0fk spans per CPU second (goal 300k)\n",
		protocol, spans, cpu.Seconds(), time.Since(begin).Seconds(), spans/1000/cpu.Seconds())
	return nil
}

func used() time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r) // cannot fail for oneself
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// taker takes all.
type taker struct {
	collector.UnimplementedTraceServiceServer
}

func (taker) Export(context.Context, *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	return &collector.ExportTraceServiceResponse{}, nil
}

func sink() error {
	overGRPC, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	overHTTP, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, taker{})
	fmt.Printf("grpc=%s http/protobuf=%s\n", overGRPC.Addr(), overHTTP.Addr())
	go func() {
		if err := server.Serve(overGRPC); err != nil {
			fmt.Fprintln(os.Stderr, "bench-otlp:", err)
		}
	}()
	return http.Serve(overHTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
}

// write makes a trace of one process with four workers.
func write(folder string, batches int) error {
	w, err := traces.Create(folder, "host-1", traces.Options{RunID: "bench", BootID: "bench"})
	if err != nil {
		return err
	}
	const ms, workers = 1_000_000, 4
	head := func(proc uint32, ts int) traces.Head { return traces.Head{TsNS: int64(ts), Proc: proc} }
	w.Append(traces.Meta{Head: head(0, 1), Key: "started_ns", Value: "1795000000000000000"})
	w.Append(traces.Process{Head: head(1, 2), Pid: 1001, Kind: "target", Hook: "on", Python: "3.11.2", Rank: -1, LocalRank: -1})
	w.Append(traces.Loader{Head: head(1, 3), Loader: 1, Length: -1, BatchSize: 4, NumWorkers: workers, InOrder: true,
		File: "/home/me/train.py", Line: 88, StartMethod: "fork"})
	w.Append(traces.Pass{Head: head(1, 4), Loader: 1, Phase: "begin"})
	for i := range uint32(workers) {
		pid := int32(1002 + i)
		w.Append(traces.Process{Head: head(2+i, 5), Pid: pid, Ppid: 1001, Kind: "worker", Hook: "on", Rank: -1, LocalRank: -1})
		w.Append(traces.Worker{Head: head(1, 5), Loader: 1, Worker: int32(i), Pid: pid, Phase: "begin"})
		w.Append(traces.Worker{Head: head(2+i, 6), Worker: int32(i), Pid: pid, Phase: "ready"})
	}
	for i := range batches {
		worker, at := i%workers, (20+i)*ms
		w.Append(traces.BatchPut{Head: head(1, at), Loader: 1, Batch: uint32(i), Worker: int32(worker), DurNS: ms / 100})
		w.Append(traces.BatchFetch{Head: head(uint32(2+worker), at+ms/10), Worker: int32(worker), Batch: uint32(i), Fetch: uint32(i / workers),
			FetchNS: 2 * ms, CollateNS: ms / 2, Samples: 4})
		w.Append(traces.BatchNext{Head: head(1, at+5*ms), Loader: 1, Batch: uint32(i), Worker: -2, Status: "ok", CallNS: int64(at + 4*ms),
			ArrivedNS: int64(at + 4*ms + ms/2), Steps: uint64(i), Grad: true, Optimizer: 1})
	}
	w.Append(traces.BatchNext{Head: head(1, (40+batches)*ms), Status: "exit", CallNS: int64(39+batches) * ms})
	return w.Seal()
}

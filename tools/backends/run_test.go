package backends

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

const ms = 1_000_000

// spansOfBatch is how many a batch with a worker has: the root and its seven stages.
const spansOfBatch = 8

// recording is a trace of about n spans, of one process with four workers that is
// never done with its data.
func recording(t *testing.T, n int) string {
	t.Helper()
	run := detecttest.NewRun(t)
	main := run.Process(-1, 0)
	at := func(ts int64) traces.Head { return traces.Head{TsNS: ts} }
	run.Meta("started_ns", "1795000000000000000")
	const workers = 4
	run.Add(main.Proc, traces.Loader{Head: at(10), Loader: 1, Length: 1 << 30, BatchSize: 4, NumWorkers: workers, Prefetch: 2, InOrder: true,
		File: "/home/me/train.py", Line: 7, StartMethod: "fork"})
	run.Add(main.Proc, traces.Pass{Head: at(10), Loader: 1, Phase: "begin"})
	for w := range uint32(workers) {
		run.Add(2+w, traces.Process{Head: at(10), Pid: int32(1002 + w), Ppid: 1001, Kind: "worker", Hook: "on", Rank: -1, LocalRank: -1})
		run.Add(main.Proc, traces.Worker{Head: at(10), Loader: 1, Worker: int32(w), Pid: int32(1002 + w), Phase: "begin"})
		run.Add(2+w, traces.Worker{Head: at(11), Worker: int32(w), Pid: int32(1002 + w), Phase: "ready"})
	}
	batches := uint32(n / spansOfBatch)
	for i := range batches {
		w, begin := i%workers, int64(20+i)*ms
		run.Add(main.Proc, traces.BatchPut{Head: at(begin), Loader: 1, Batch: i, Worker: int32(w), DurNS: ms / 100, Indices: []int64{int64(i)}})
		run.Add(2+w, traces.BatchFetch{Head: at(begin + ms/10), Worker: int32(w), Batch: i, Fetch: i / workers, FetchNS: 2 * ms, CollateNS: ms / 2, Samples: 4})
		run.Add(main.Proc, traces.BatchNext{Head: at(begin + 5*ms), Loader: 1, Batch: i, Worker: -2, Status: "ok", CallNS: begin + 4*ms + ms/2,
			ArrivedNS: begin + 4*ms + 3*ms/4, Steps: uint64(i), Grad: true, Optimizer: 1, Rows: 4})
	}
	run.Add(main.Proc, traces.BatchNext{Head: at(int64(30+batches) * ms), Status: "exit", CallNS: int64(29+batches) * ms})
	run.Seal()
	run.Open(t) // flushes
	return run.Dir
}

// told is what export otlp says of its spans.
type told struct {
	delivered, sent int
	code            int
	text            string
	cpu             time.Duration
}

var line = regexp.MustCompile(`delivered (\d+) of (\d+) spans`)

// export runs the program; during is done meanwhile.
func export(t *testing.T, trace string, during func(), env ...string) (o told) {
	t.Helper()
	cmd := exec.Command(program(t), "export", "otlp", "--patience", "5m", trace)
	cmd.Env = append(os.Environ(), env...)
	out := new(output)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if during != nil {
		during()
	}
	_ = cmd.Wait() // its code is looked at
	o.code, o.text = cmd.ProcessState.ExitCode(), out.String()
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	o.cpu = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	m := line.FindStringSubmatch(o.text)
	if m == nil {
		t.Fatalf("exit code %d, says nothing of spans: %s", o.code, o.text)
	}
	o.delivered, _ = strconv.Atoi(m[1])
	o.sent, _ = strconv.Atoi(m[2])
	t.Logf("%s%.0fk spans per CPU second, reading and judging the trace included", o.text, float64(o.sent)/1000/o.cpu.Seconds())
	return o
}

func program(t *testing.T) string {
	path := os.Getenv("DPTRACE_BIN")
	if path == "" {
		t.Skip("DPTRACE_BIN is not set: this is a test of make backends")
	}
	return path
}

// count is how many spans to send: SPANS, or as many as a slow machine can take.
func count(t *testing.T) int {
	text := os.Getenv("SPANS")
	if text == "" {
		return 100_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("SPANS=%q: %v", text, err)
	}
	return n
}

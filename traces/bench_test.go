package traces

import (
	"fmt"
	"math/rand"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Rows as a training run makes them: 8 workers, 4 slots, tiny samples.
func benchFetch(r *rand.Rand, i int) any {
	ts := int64(i)*400_000 + r.Int63n(50_000)
	return BatchFetch{Head{TsNS: ts, Proc: uint32(2 + i%8)}, 0, 3, int32(i % 8), uint32(i), uint32(i / 8),
		r.Int63n(200_000), 2_000_000 + r.Int63n(500_000), 300_000 + r.Int63n(100_000), 20_000 + r.Int63n(10_000), 64}
}

func benchNext(r *rand.Rand, i int) any {
	ts := int64(i)*400_000 + r.Int63n(50_000)
	return BatchNext{Head: Head{TsNS: ts, Proc: 1}, Loader: 1, Pass: 3, Batch: uint32(i), Worker: int32(i % 8), Status: "ok",
		CallNS: ts - r.Int63n(300_000), ArrivedNS: ts - r.Int63n(90_000), Steps: uint64(i), Optimizer: 1, Grad: true,
		Backwards: uint64(i), GradsFrom: uint64(i - 1), GradsTo: uint64(i), Rows: 64, GradOff: true, Watched: true}
}

func benchState(r *rand.Rand, i int) any {
	id := make([]byte, 16) // of an MT19937 block: constant for several rows
	rand.New(rand.NewSource(int64(i / 20))).Read(id)
	return RngState{Head{TsNS: int64(i)*100_000 + r.Int63n(50_000), Proc: uint32(2 + i%8)},
		uint32(1 + i%4), 0, 3, int32(i % 8), uint32(i / 32),
		[]string{"before", "after"}[i%2], r.Int63n(625), id, nil, 2_000_000 + r.Int63n(500_000)}
}

func benchPCG(r *rand.Rand, i int) any {
	s := benchState(r, i).(RngState)
	s.ID, s.Pos, s.Raw = nil, 0, make([]byte, 40)
	rand.New(rand.NewSource(int64(i / 2))).Read(s.Raw[:16])
	return s
}

func benchCopy(r *rand.Rand, i int) any {
	ts := int64(i)*20_000 + r.Int63n(5_000)
	return Copy{Head: Head{TsNS: ts, Proc: 1}, SeenBy: "driver", Thread: 4711, Main: true, Function: "cuMemcpyHtoDAsync_v2", Direction: "to-device",
		Source: 0x7f0000000000 + uint64(r.Intn(64))<<20, Target: 0x7e0000000000 + uint64(r.Intn(64))<<20, Bytes: 1 << 20, Rows: 1, Async: true,
		CallNS: 3_000 + r.Int63n(2_000), GapNS: 1_000 + r.Int63n(500), Next: "launch", Compute: "same", Site: 1}
}

var benchRows = []struct {
	name string
	row  func(*rand.Rand, int) any
}{{"batch_fetch", benchFetch}, {"batch_next", benchNext}, {"rng_state_mt19937", benchState}, {"rng_state_pcg64", benchPCG}, {"copy", benchCopy}}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWrite prints rows per second of CPU and bytes per row, in full
// batches and in the 100-row batches of a loader with 100 rows a second.
func BenchmarkWrite(b *testing.B) {
	for _, kind := range benchRows {
		for _, per := range []int{maxBatchRows, 100} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, per), func(b *testing.B) {
				r := rand.New(rand.NewSource(1))
				rows := make([]any, maxBatchRows)
				for i := range rows {
					rows[i] = kind.row(r, i)
				}
				w, err := Create(filepath.Join(b.TempDir(), "x.dptrace"), "p", Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				begin, n := cpuTime(), 0
				for range b.N {
					w.Append(rows[n%len(rows)])
					if n++; n%per == 0 {
						w.Flush()
					}
				}
				w.Flush()
				b.ReportMetric(float64(n)/(cpuTime()-begin).Seconds(), "rows/cpu-s")
				b.ReportMetric(float64(w.Bytes())/float64(n), "B/row")
				b.StopTimer()
				w.Close()
			})
		}
	}
}

// BenchmarkRead reads a trace of all tables.
func BenchmarkRead(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "x.dptrace")
	w, err := Create(dir, "p", Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewSource(1))
	const n = 100_000
	for i := range n {
		for _, kind := range benchRows {
			w.Append(kind.row(r, i))
		}
	}
	if err := w.Seal(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	begin := cpuTime()
	for range b.N {
		run, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		if err := run.Each(nil, func(Batch) error { return nil }); err != nil || len(run.Problems) > 0 {
			b.Fatal(err, run.Problems)
		}
	}
	b.ReportMetric(float64(b.N*n*len(benchRows))/(cpuTime()-begin).Seconds(), "rows/cpu-s")
}

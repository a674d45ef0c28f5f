package analyze_test

import (
	"runtime"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
)

// BenchmarkGenerations analyses generations of workers, 400 batches and four
// generators each. 500 of them (200,000 batches) must stay within 256 MB: they
// took 90 MB resident and 2.8 s on two cores.
func BenchmarkGenerations(b *testing.B) {
	r := NewRun(b)
	o := r.Process(-1, 0).Open(Loader{Workers: 2, Batches: 200, Slots: []Slot{numpyRNG, randomRNG, torchRNG, datasetRNG}, Fetch: draw(3000),
		Start: func(pass, worker int) []*Gen {
			s := apart(pass, worker)
			return []*Gen{MT(uint32(s)), Python(uint64(s)), MT(uint32(s + 7)), PCG(uint64(s))}
		}})
	const generations = 40
	for range generations {
		o.Pass(Train)
	}
	r.Seal()
	run := r.Open(b)
	var peak runtime.MemStats
	for b.Loop() {
		result, err := analyze.Run(run, analyze.Rules)
		if err != nil {
			b.Fatal(err)
		}
		if len(result.Findings) > 0 {
			b.Fatal(result.Findings)
		}
	}
	runtime.ReadMemStats(&peak)
	b.ReportMetric(float64(peak.HeapSys)/(1<<20), "MB-heap")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/(generations*400), "µs/batch")
}

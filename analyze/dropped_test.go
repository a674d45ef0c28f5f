package analyze_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

// TestDroppedRecords: records that a full ring dropped leave no hole in the
// numbers of the rows, only a count. What is left is never called clean, and
// nothing is found in it that the whole run lacks.
func TestDroppedRecords(t *testing.T) {
	for _, p := range programs {
		run := NewRun(t)
		p.play(run)
		whole := run.Open(t)
		truth := statuses(t, whole)
		r := rand.New(rand.NewPCG(7, uint64(len(p.name))))
		for round := range 3 {
			d := &dropper{r: r, share: []float64{0.01, 0.1, 0.4}[round%3], from: map[uint32]uint64{}}
			for key, status := range d.statuses(t, whole) {
				want, known := truth[key]
				switch {
				case !known: // the row of its loader is lost
				case status == finding.Clean && want != finding.Clean:
					t.Errorf("%s: %s is clean, in the whole run %s", p.name, key, want)
				case status == finding.Found && want != finding.Found:
					t.Errorf("%s: %s is found, in the whole run %s", p.name, key, want)
				}
			}
		}
	}
}

// dropper leaves out records of the hook, and counts them for each process.
type dropper struct {
	r     *rand.Rand
	share float64
	from  map[uint32]uint64
}

func drop[T any](d *dropper, rows []T, head func(*T) *traces.Head) []T {
	var kept []T
	for i := range rows {
		row := rows[i]
		if d.r.Float64() < d.share {
			d.from[head(&row).Proc]++
			continue
		}
		kept = append(kept, row)
	}
	return kept
}

func (d *dropper) drop(b *traces.Batch, states *uint64) {
	switch rows := b.Rows.(type) {
	case []traces.Pass:
		b.Rows = drop(d, rows, func(r *traces.Pass) *traces.Head { return &r.Head })
	case []traces.Worker:
		b.Rows = drop(d, rows, func(r *traces.Worker) *traces.Head { return &r.Head })
	case []traces.BatchPut:
		b.Rows = drop(d, rows, func(r *traces.BatchPut) *traces.Head { return &r.Head })
	case []traces.BatchFetch:
		b.Rows = drop(d, rows, func(r *traces.BatchFetch) *traces.Head { return &r.Head })
	case []traces.BatchNext:
		b.Rows = drop(d, rows, func(r *traces.BatchNext) *traces.Head { return &r.Head })
	case []traces.RngSlot:
		b.Rows = drop(d, rows, func(r *traces.RngSlot) *traces.Head { return &r.Head })
	case []traces.RngState:
		kept := drop(d, rows, func(r *traces.RngState) *traces.Head { return &r.Head })
		for i := range kept {
			kept[i].Seq = *states
			*states++
		}
		b.Rows = kept
	}
}

func (d *dropper) statuses(t *testing.T, run *traces.Run) map[string]finding.Status {
	t.Helper()
	reading := collect.NewReading(analyze.Sources(analyze.Rules)...)
	var states uint64
	if err := run.Each(reading.Tables(), func(b traces.Batch) error {
		d.drop(&b, &states)
		reading.Add(b)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var lost []traces.Lost
	for proc, n := range d.from {
		lost = append(lost, traces.Lost{Head: traces.Head{TsNS: 1, Proc: proc}, Source: "hook", Count: n, Reason: "its ring was full"})
	}
	reading.Add(traces.Batch{Part: run.Parts[0], Table: "lost", Rows: lost})
	result, err := analyze.Judge(reading.Evidence(run), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	return statusesOf(result)
}

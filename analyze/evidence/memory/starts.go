package memory

import (
	"maps"
	"slices"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// StartSource is how workers were started.
var StartSource = &collect.Source[*Starts]{
	Name:   "starts of workers",
	Tables: []string{"batch_next"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Starts] { return &firstBatches{map[passKey]int64{}} },
}

// Starts is the evidence of StartSource.
type Starts struct{ of map[*timeline.Loader][]Start }

// Start is how the workers of one pass were started: what each was sent, and
// how long the first batch took. Passes that persistent workers serve again have
// none.
type Start struct {
	Pass    *timeline.Pass
	Method  string // fork, spawn, forkserver
	Workers int
	Bytes   int64 // pickled, for all workers
	Pickle  time.Duration
	CPU     time.Duration // of it, of the thread that pickled; Pickle where it is not known
	First   time.Duration // from the begin of the pass to its first batch; 0 unknown
	Refs    []finding.Ref
}

// firstBatches is when the first batch of each pass was delivered.
type firstBatches struct{ at map[passKey]int64 }

type passKey struct {
	part               *traces.Part
	proc, object, pass uint32
}

// Add takes the rows of one batch.
func (f *firstBatches) Add(b traces.Batch) {
	rows, _ := b.Rows.([]traces.BatchNext)
	for i := range rows {
		r := &rows[i]
		k := passKey{b.Part, r.Proc, r.Loader, r.Pass}
		if _, ok := f.at[k]; !ok && r.Status == "ok" {
			f.at[k] = r.TsNS
		}
	}
}

// Merge takes over the passes of other parts.
func (f *firstBatches) Merge(other collect.Collector[*Starts]) {
	maps.Copy(f.at, other.(*firstBatches).at)
}

// Build finds the starts of all loaders.
func (f *firstBatches) Build(e *collect.Evidence) *Starts {
	s := &Starts{map[*timeline.Loader][]Start{}}
	for _, l := range collect.Of(e, timeline.Source).Loaders {
		begun := map[passKey][]*traces.Worker{}
		for _, wp := range l.WorkerProcesses {
			if r := wp.Begin; r != nil {
				k := passKey{l.Process.Part, l.Process.Proc, r.Loader, r.Pass}
				begun[k] = append(begun[k], r)
			}
		}
		for _, pass := range l.Passes {
			k := passKey{l.Process.Part, l.Process.Proc, pass.Object, pass.Recorded}
			if len(begun[k]) > 0 {
				s.of[l] = append(s.of[l], startOf(pass, begun[k], f.at[k]))
			}
		}
	}
	return s
}

// startOf a pass, by the rows of its workers; first is when its first batch was
// delivered.
func startOf(pass *timeline.Pass, begun []*traces.Worker, first int64) Start {
	s := Start{Pass: pass, Method: pass.DataLoader().StartMethod, Workers: len(begun)}
	for _, r := range begun {
		s.Bytes += r.PickledBytes
		s.Pickle += time.Duration(r.PickleNS)
		if r.PickleCPUNS > 0 {
			s.CPU += time.Duration(min(r.PickleCPUNS, r.PickleNS))
		} else {
			s.CPU += time.Duration(r.PickleNS)
		}
		s.Refs = append(s.Refs, ref(pass.Loader.Process.Part, "worker", r.Seq))
	}
	if first > pass.Begin && pass.Begin > 0 {
		s.First = time.Duration(first - pass.Begin)
	}
	return s
}

// Of is the starts of a loader's workers, in their order.
func (s *Starts) Of(l *timeline.Loader) []Start { return s.of[l] }

// Methods by which the workers of a loader are started: fork, spawn, forkserver,
// "" for one that is not known. None: it has no workers.
func Methods(ranks timeline.Ranks) []string {
	var all []string
	for _, l := range ranks {
		for i := range l.Objects {
			if o := &l.Objects[i]; o.NumWorkers != 0 && !slices.Contains(all, o.StartMethod) {
				all = append(all, o.StartMethod)
			}
		}
	}
	slices.Sort(all)
	return all
}

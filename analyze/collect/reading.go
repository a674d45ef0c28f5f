package collect

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/dptrace/dptrace/traces"
)

// Read reads what some sources, and those that they use, look at. The parts of
// the trace are read side by side. What is damaged is left out and noted in
// run.Problems; an error means that reading could not go on.
func Read(run *traces.Run, sources ...Any) (*Evidence, error) {
	readings := make([]*Reading, max(1, min(runtime.GOMAXPROCS(0), len(run.Parts))))
	for i := range readings {
		readings[i] = NewReading(sources...)
		readings[i].share(readings[0])
	}
	err := run.EachPart(readings[0].Tables(), len(readings), func(n int, b traces.Batch) error {
		readings[n].Add(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	for _, r := range readings[1:] {
		readings[0].Merge(r)
	}
	return readings[0].Evidence(run), nil
}

// Reading is the collectors of some sources while rows come in. The rows of one
// part go to one Reading, table by table in the order of Tables. A collector
// that panics is the failure of its source alone.
type Reading struct {
	sources    []Any
	collectors []collector
	failed     []*Failure
	readers    map[string][]int // of each table: the sources that read it
	tables     []string
}

// NewReading is one of some sources and of those that they use.
func NewReading(sources ...Any) *Reading {
	r := &Reading{sources: closed(sources), readers: map[string][]int{}}
	r.failed = make([]*Failure, len(r.sources))
	for i, s := range r.sources {
		r.collectors = append(r.collectors, s.new())
		r.tables = append(r.tables, s.tables()...)
		for _, t := range s.tables() {
			r.readers[t] = append(r.readers[t], i)
		}
	}
	r.tables = distinct(r.tables)
	return r
}

// share the collectors of another Reading that are for all.
func (r *Reading) share(o *Reading) {
	for i, s := range r.sources {
		if s.shared() {
			r.collectors[i] = o.collectors[i]
		}
	}
}

// Tables that are read, in the order in which they have to come.
func (r *Reading) Tables() []string { return r.tables }

// Add takes the rows of one batch.
func (r *Reading) Add(b traces.Batch) {
	for _, i := range r.readers[b.Table] {
		r.guard(i, func() { r.collectors[i].add(b) })
	}
}

// Merge takes over what another Reading of the same sources has read of other
// parts. The other one is not used afterwards.
func (r *Reading) Merge(o *Reading) {
	var wg sync.WaitGroup
	for i := range r.sources {
		wg.Go(func() {
			if r.failed[i] == nil {
				r.failed[i] = o.failed[i]
			}
			if r.collectors[i] != o.collectors[i] { // else they have shared it
				r.guard(i, func() { r.collectors[i].merge(o.collectors[i]) })
			}
		})
	}
	wg.Wait()
}

// guard calls do for a source that has not failed.
func (r *Reading) guard(i int, do func()) {
	if r.failed[i] == nil {
		r.failed[i] = Guard("reading of "+r.sources[i].name(), do)
	}
}

// Evidence is what was read of a run.
func (r *Reading) Evidence(run *traces.Run) *Evidence {
	e := &Evidence{Run: run, of: map[Any]*making{}}
	for i, s := range r.sources {
		e.of[s] = &making{collector: r.collectors[i], failed: r.failed[i]}
	}
	return e
}

package collect

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/dptrace/dptrace/traces"
)

// Evidence is what was collected of one run. What a source makes of its rows is
// made once, when it is first asked for.
type Evidence struct {
	Run *traces.Run
	of  map[Any]*making
}

// making is one source's evidence.
type making struct {
	once      sync.Once
	collector collector // nil when it is made
	evidence  any
	failed    *Failure
}

func (m *making) make(e *Evidence, name string) {
	m.once.Do(func() {
		if m.failed == nil {
			m.failed = Guard("evidence of "+name, func() { m.evidence = m.collector.build(e) })
		}
		m.collector = nil
	})
}

// Of is what a source makes of its rows. It panics with a *Failure where that
// failed, or where the source was not read: callers are guarded (see Guard).
func Of[E any](e *Evidence, s *Source[E]) E {
	m := e.of[s]
	if m == nil {
		panic(fmt.Sprintf("source %s was not read: who asks for it has to name it", s.Name))
	}
	m.make(e, s.Name)
	if m.failed != nil {
		panic(m.failed)
	}
	return m.evidence.(E)
}

// Make makes the evidence of all sources, side by side.
func (e *Evidence) Make() {
	at := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for s, m := range e.of {
		wg.Go(func() {
			for _, before := range s.uses() { // it would wait for them with a place of its own
				e.of[before].make(e, before.name())
			}
			at <- struct{}{}
			m.make(e, s.name())
			<-at
		})
	}
	wg.Wait()
}

// Each calls fn with the evidence of some sources and of all that they use, as
// far as it could be made.
func (e *Evidence) Each(sources []Any, fn func(evidence any)) {
	for _, s := range closed(sources) {
		if m := e.of[s]; m != nil {
			if m.make(e, s.name()); m.failed == nil {
				fn(m.evidence)
			}
		}
	}
}

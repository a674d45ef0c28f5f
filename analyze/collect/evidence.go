package collect

import (
	"fmt"

	"github.com/dptrace/dptrace/traces"
)

// Evidence is what was collected of one run. What a source makes of its rows is
// made when it is first asked for. It is not for several goroutines at a time.
type Evidence struct {
	Run       *traces.Run
	collected map[Any]collector
	made      map[Any]made
}

type made struct {
	evidence any
	failed   *Failure
}

// Of is what a source makes of its rows. It panics with a *Failure where that
// failed, or where the source was not read: callers are guarded (see Guard).
func Of[E any](e *Evidence, s *Source[E]) E {
	m, ok := e.made[s]
	if !ok {
		c := e.collected[s]
		if c == nil {
			panic(fmt.Sprintf("source %s was not read: who asks for it has to name it", s.Name))
		}
		m.failed = Guard("evidence of "+s.Name, func() { m.evidence = c.build(e) })
		e.made[s] = m
		delete(e.collected, s)
	}
	if m.failed != nil {
		panic(m.failed)
	}
	return m.evidence.(E)
}

// Made calls fn with the evidence of some sources and of all that they use, as
// far as it was asked for and could be made.
func (e *Evidence) Made(sources []Any, fn func(evidence any)) {
	for _, s := range closed(sources) {
		if m, ok := e.made[s]; ok && m.failed == nil {
			fn(m.evidence)
		}
	}
}

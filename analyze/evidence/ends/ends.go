// Package ends is how the processes of a run ended, for the rules about life and
// death: what of it is lost is a gap of theirs.
package ends

import (
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for the rules about life and death. It reads nothing that the
// timeline does not.
var Source = &collect.Source[*Ends]{
	Name:  "ends",
	Proof: []string{"exit", "act", "exception", "signal", "oom"},
	Uses:  []collect.Any{timeline.Source},
	New:   func() collect.Collector[*Ends] { return collector{} },
}

type collector struct{}

func (collector) Add(traces.Batch)                {}
func (collector) Merge(collect.Collector[*Ends])  {}
func (collector) Build(e *collect.Evidence) *Ends { return of(collect.Of(e, timeline.Source)) }

// Ends is how the processes of a run ended.
type Ends struct {
	processes []*timeline.Process
	workers   []End
	of        map[*timeline.WorkerProcess]End
	worker    map[*timeline.Process]bool
}

// End of one worker process.
type End struct {
	Worker *timeline.WorkerProcess
	timeline.Death
	Known bool // code or signal
}

func of(t *timeline.Timeline) *Ends {
	e := &Ends{processes: t.Processes, of: map[*timeline.WorkerProcess]End{}, worker: map[*timeline.Process]bool{}}
	for _, l := range t.Loaders {
		for _, w := range l.WorkerProcesses {
			end := End{Worker: w}
			end.Death, end.Known = w.Died()
			e.workers, e.of[w] = append(e.workers, end), end
			if w.Process != nil {
				e.worker[w.Process] = true
			}
		}
	}
	return e
}

// Of a worker process.
func (e *Ends) Of(w *timeline.WorkerProcess) End { return e.of[w] }

// IsWorker reports whether a process is a worker of some loader.
func (e *Ends) IsWorker(p *timeline.Process) bool { return e.worker[p] }

// When is the time of an end, as near as it is known: torch's error comes soon
// after it, the exit code when the workers are shut down.
func (e *End) When() int64 {
	at := e.TsNS
	for _, c := range e.Worker.Named {
		if !e.Exact && (at == 0 || c.TsNS < at) {
			at = c.TsNS
		}
	}
	return at
}

// Killed counts the processes of the run that got SIGKILL after one time and not
// after another, as far as it is known.
func (e *Ends) Killed(from, to int64) (n int) {
	counted := map[*timeline.Process]bool{}
	for i := range e.workers {
		w := &e.workers[i]
		if w.Known && w.Signal == timeline.SIGKILL && from < w.When() && w.When() <= to {
			n++
			counted[w.Worker.Process] = true
		}
	}
	for _, p := range e.processes {
		killed := p.EndKnown() && p.Exit.Signal == timeline.SIGKILL && p.Next == nil
		if killed && !counted[p] && from < p.Exit.TsNS && p.Exit.TsNS <= to {
			n++
		}
	}
	return n
}

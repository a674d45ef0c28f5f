package timeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Gap says what is missing from what should be known about a loader, or "" if
// nothing is: then, and only then, may a rule that reads these tables call the
// loader clean.
func (t *Timeline) Gap(l *Loader, tables []string) string {
	procs, gaps := l.watched()
	gaps = append(t.losses(procs, l.Process.Part, tables), gaps...)
	return l.gaps(gaps)
}

// gaps is what is missing of a loader: if nothing else is said, that its own row is.
func (l *Loader) gaps(gaps []string) string {
	if len(gaps) == 0 && l.Lost {
		return "the row that says how the DataLoader was made is lost"
	}
	slices.Sort(gaps)
	return strings.Join(slices.Compact(gaps), "; ")
}

// Unwatched says which workers of the loader were not watched from inside, or "".
func (l *Loader) Unwatched() string {
	_, gaps := l.watched()
	return strings.Join(gaps, "; ")
}

// watched is the loader's process and its workers that were watched from inside;
// gaps says which were not.
func (l *Loader) watched() (procs []*Process, gaps []string) {
	procs = []*Process{l.Process}
	unseen := map[int]bool{}
	workers := map[int]bool{}
	orphans := 0
	for _, pass := range l.Passes {
		if len(pass.Workers) == 0 {
			orphans++
		}
		for _, w := range pass.Workers {
			workers[w.Number] = true
			switch {
			case w.Process == nil || !w.Process.Hooked():
				unseen[w.Number] = true
			case !slices.Contains(procs, w.Process):
				procs = append(procs, w.Process)
			}
		}
	}
	if len(unseen) > 0 {
		gaps = append(gaps, fmt.Sprintf("%d of %d workers could not be watched from inside", len(unseen), len(workers)))
	}
	if orphans > 0 {
		gaps = append(gaps, "the workers of "+words.Count(orphans, "pass")+" are not known")
	}
	return procs, gaps
}

// Losses says what is missing from the rows of some tables about a loader and
// its workers, or "" if nothing is. That a worker could not be watched from
// inside is not counted.
func (t *Timeline) Losses(l *Loader, tables []string) string {
	procs := []*Process{l.Process}
	for _, wp := range l.WorkerProcesses {
		if wp.Process != nil {
			procs = append(procs, wp.Process)
		}
	}
	return l.gaps(t.losses(procs, l.Process.Part, tables))
}

// LossesOf says the same about some processes of a part.
func (t *Timeline) LossesOf(part *traces.Part, procs []*Process, tables []string) string {
	gaps := t.losses(procs, part, tables)
	slices.Sort(gaps)
	return strings.Join(slices.Compact(gaps), "; ")
}

// losses of some processes, which are of one part.
func (t *Timeline) losses(procs []*Process, part *traces.Part, tables []string) []string {
	var gaps []string
	var lost uint64
	for _, p := range procs {
		for _, n := range p.LostRecords {
			lost += n
		}
	}
	if lost > 0 {
		gaps = append(gaps, fmt.Sprintf("records were lost: %d of this loader's processes", lost))
	}
	for _, r := range t.lost[part] {
		if r.Proc == 0 && r.Count > 0 && (r.Table == "" || slices.Contains(tables, r.Table)) {
			gaps = append(gaps, fmt.Sprintf("records were lost: %d of %s (%s)", r.Count, or(r.Table, "an unknown table"), or(r.Reason, r.Source)))
		}
	}
	for _, p := range t.problems {
		if p.Part == part && p.LostRows != 0 && p.Kind != traces.Newer && slices.Contains(tables, p.Table) {
			gaps = append(gaps, "the trace is incomplete: "+p.String())
		}
	}
	if !part.Sealed {
		gaps = append(gaps, "the recording was cut before the program ended")
	}
	return gaps
}

// Incomplete reports whether rows of some tables are lost that concern a process
// itself, not its workers. That the last ones may be missing is not counted.
func (t *Timeline) Incomplete(p *Process, tables ...string) bool {
	if len(p.LostRecords) > 0 {
		return true
	}
	for _, r := range t.lost[p.Part] {
		if r.Proc == 0 && r.Count > 0 && (r.Table == "" || slices.Contains(tables, r.Table)) {
			return true
		}
	}
	return slices.ContainsFunc(t.problems, func(x traces.Problem) bool {
		return x.Part == p.Part && x.LostRows != 0 && slices.Contains(tables, x.Table)
	})
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

package memory

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// LookSource is what smaps_rollup said of the processes. What it says goes
// beside what was counted, so that a gap in it is none of a rule.
var LookSource = &collect.Source[*Looks]{
	Name:   "looks at memory",
	Tables: []string{"memory"},
	New:    func() collect.Collector[*Looks] { return &Looks{map[processKey]*Look{}} },
}

// Looks is the evidence of LookSource.
type Looks struct{ of map[processKey]*Look }

// Look is the first and the last look at a process. They are the same if there
// was one.
type Look struct {
	First, Last traces.Memory
	Times       int
}

// Add takes the rows of one batch.
func (l *Looks) Add(b traces.Batch) {
	rows, _ := b.Rows.([]traces.Memory)
	for i := range rows {
		r := &rows[i]
		if r.Source != "smaps_rollup" || r.Rss <= 0 { // statm knows nothing of private memory; a process that is ending has none
			continue
		}
		k := processKey{b.Part, r.Proc}
		if l.of[k] == nil {
			l.of[k] = &Look{First: *r}
		}
		l.of[k].Last = *r
		l.of[k].Times++
	}
}

// Merge takes over the looks at processes of other parts.
func (l *Looks) Merge(other collect.Collector[*Looks]) { maps.Copy(l.of, other.(*Looks).of) }

// Build is the looks as they were collected.
func (l *Looks) Build(*collect.Evidence) *Looks { return l }

// Of is the looks at a process; ok is false if there was none.
func (l *Looks) Of(p *timeline.Process) (look Look, ok bool) {
	if found := l.of[processKey{p.Part, p.Proc}]; found != nil {
		return *found, true
	}
	return Look{}, false
}

// Private is the private memory of the workers of a pass, the most that was seen
// of each, on average; 0 unknown.
func (l *Looks) Private(pass *timeline.Pass) int64 {
	var sum, n int64
	for _, w := range pass.Workers {
		if w.Process == nil || w.Process == pass.Loader.Process {
			continue
		}
		if look, ok := l.Of(w.Process); ok {
			sum += max(look.First.PrivateDirty, look.Last.PrivateDirty)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

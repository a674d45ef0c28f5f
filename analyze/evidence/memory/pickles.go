package memory

import (
	"time"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Start is how the workers of one pass were started: what each was sent, and
// how long the first batch took. Passes that persistent workers serve again have
// none.
type Start struct {
	Pass    *timeline.Pass
	Method  string // fork, spawn, forkserver
	Workers int
	Bytes   int64 // pickled, for all workers
	Pickle  time.Duration
	First   time.Duration // from the begin of the pass to its first batch; 0 unknown
	Refs    []finding.Ref
}

// Starts of a loader's workers, in their order.
func (m *Memory) Starts(l *timeline.Loader) []Start {
	p := m.parts[l.Process.Part]
	if p == nil {
		return nil
	}
	var starts []Start
	for _, pass := range l.Passes {
		k := passKey{l.Process.Proc, pass.Object, pass.Recorded}
		rows := p.starts[k]
		if len(rows) == 0 {
			continue
		}
		s := Start{Pass: pass, Method: objectOf(l, pass.Object).StartMethod, Workers: len(rows)}
		for _, r := range rows {
			s.Bytes += r.PickledBytes
			s.Pickle += time.Duration(r.PickleNS)
			s.Refs = append(s.Refs, p.ref(l, "worker", r.Seq))
		}
		if first := p.firsts[k]; first > pass.Begin && pass.Begin > 0 {
			s.First = time.Duration(first - pass.Begin)
		}
		starts = append(starts, s)
	}
	return starts
}

// Own is the private memory of the workers of a pass, the most that was seen of
// each, on average; 0 unknown.
func (m *Memory) Own(pass *timeline.Pass) int64 {
	p := m.parts[pass.Loader.Process.Part]
	var sum, n int64
	for _, w := range pass.Workers {
		if w.Process == nil || w.Process == pass.Loader.Process || p == nil {
			continue
		}
		if l := p.looks[w.Process.Proc]; l != nil {
			sum += max(l.first.PrivateDirty, l.last.PrivateDirty)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

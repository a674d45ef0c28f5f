package batches

import "sort"

// moments is how many steps the optimizers of the process had taken as each batch
// of a pass was delivered. As a rule it is one more with each, so that a pass is a
// few runs.
type moments struct {
	runs []run
	next uint32 // the batch after the last one that is known
	full bool   // what follows is not known
}

// run is batches of which each was delivered so many steps after the one before.
type run struct {
	batch uint32 // the first
	last  uint32
	steps uint64 // at the first
	each  uint64
}

// mostRuns of a pass are kept.
const mostRuns = 1 << 12

// add the next delivery.
func (m *moments) add(batch uint32, steps uint64) {
	if m.full || len(m.runs) > 0 && batch < m.next {
		return
	}
	if n := len(m.runs); n > 0 && batch == m.next {
		r := &m.runs[n-1]
		if batch == r.batch+1 {
			r.each = steps - r.steps
		}
		if r.at(batch) == steps && steps >= r.steps {
			r.last = batch
			m.next++
			return
		}
	}
	if m.full = len(m.runs) == mostRuns; !m.full {
		m.runs = append(m.runs, run{batch, batch, steps, 0})
		m.next = batch + 1
	}
}

func (r *run) at(batch uint32) uint64 { return r.steps + r.each*uint64(batch-r.batch) }

// Steps is how many steps had been taken as a batch was delivered; ok is false
// where that is not known.
func (d *Deliveries) Steps(batch uint32) (steps uint64, ok bool) {
	m := &d.moments
	i := sort.Search(len(m.runs), func(i int) bool { return m.runs[i].batch > batch }) - 1
	if i < 0 || batch > m.runs[i].last {
		return 0, false
	}
	return m.runs[i].at(batch), true
}

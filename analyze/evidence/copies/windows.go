package copies

import (
	"github.com/dptrace/dptrace/analyze/timeline"
)

// warmUp is how many batches a process is delivered before its copies are judged: the
// first ones wait for memory to be pinned, for kernels to be loaded, and the like.
const warmUp = 10

// window is what follows the delivery of a batch until next() is called again.
type window struct {
	from, end int64    // next() has returned, next() is called
	next      int64    // and returns
	copies    []copied // that the first thread began
	aside     int      // that other threads did
}

type passKey struct{ loader, pass uint32 }

// windows of the loaders of a process, after the warm-up: those in which no other
// loader has delivered anything since the batch, nor between it and the one after it. So
// what is copied there is not the batch of another loader of the same loop.
func (r *procRows) windows(process *timeline.Process) map[*timeline.Loader][]window {
	loaders := map[passKey]*timeline.Loader{}
	for _, l := range process.Loaders {
		for _, p := range l.Passes {
			loaders[passKey{p.Object, p.Recorded}] = l
		}
	}
	all := map[*timeline.Loader][]window{}
	delivered, from := 0, 0
	for i, d := range r.next {
		if d.ok {
			delivered++
		}
		if !d.ok || i+1 == len(r.next) || delivered <= warmUp {
			continue
		}
		after := r.next[i+1]
		l := loaders[passKey{d.loader, d.pass}]
		if l == nil || after.loader != d.loader || after.pass != d.pass || r.last != 0 && after.at > r.last {
			continue
		}
		w := window{from: d.at, end: after.call, next: after.at}
		for ; from < len(r.copies) && r.copies[from].at < w.from; from++ {
		}
		to := from
		for ; to < len(r.copies) && r.copies[to].at < w.end; to++ {
			if c := &r.copies[to]; c.main {
				w.copies = append(w.copies, *c)
			} else {
				w.aside++
			}
		}
		from = to
		if r.skipped(&w) {
			continue
		}
		all[l] = append(all[l], w)
	}
	return all
}

// skipped reports whether the hook has left out the copies of a window: all of them, as it takes all of a batch or none.
func (r *procRows) skipped(w *window) bool {
	if len(w.copies) > 0 {
		return false
	}
	for _, s := range r.skips {
		if s.from < w.end && w.from < s.to {
			return true
		}
	}
	return false
}

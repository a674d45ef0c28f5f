package stages

import (
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// Copied is what the first thread of a process has copied to devices in a step: what succeeded, and was not only
// captured into a graph. Copies of at most 64 KiB have no rows. Whether it was the batch is not asked here.
type Copied struct {
	Copies int
	Bytes  int64
	NS     int64 // that the thread was in the calls, and in the waits right after them
}

// Took is how long a stage took, in nanoseconds; 0 not known. Between two copies of a step the thread may do something
// else, so that of H2D only the copies count.
func (b *Batch) Took(s Stage) int64 {
	if s == H2D {
		return b.Copied.NS
	}
	return b.Stages[s].NS()
}

// Drivers are the processes in which calls of the CUDA driver were watched: what the hook has told of copies there is the same copies.
func Drivers(run *traces.Run) map[Process]bool {
	all := map[Process]bool{}
	for part, r := range traces.Rows[traces.CudaLibrary](run) {
		if r.Library == "driver" && r.Proc != 0 && r.How != "" {
			all[Process{part, r.Proc}] = true
		}
	}
	return all
}

// Twice reports whether a row is of a copy that has another row, which counts; or of none.
func Twice(drivers map[Process]bool, part *traces.Part, r *traces.Copy) bool {
	return r.SeenBy == "hook" && (drivers[Process{part, r.Proc}] || r.Bytes == 0)
}

// backToBack is how long after the end of a copy's call a wait that belongs to it begins at the latest, in nanoseconds
// (memcpy_and_sync of torch; both calls are probed, which takes 1.5 to 2 us).
const backToBack = 20_000

// RightAfter reports whether what begins so many nanoseconds after a copy's call belongs to the copy.
func RightAfter(gap int64) bool { return gap >= 0 && gap <= backToBack }

// InCopy is how long a thread was in a copy, in nanoseconds: in the call, and in the wait right after it if there was one.
func InCopy(r *traces.Copy) int64 {
	ns := max(r.CallNS, 0)
	if WaitsRightAfter(r) {
		ns += r.NextNS
	}
	return max(ns, 0) // of times that no call has, too
}

// WaitsRightAfter reports whether a thread waits for the device right after a copy.
func WaitsRightAfter(r *traces.Copy) bool { return r.NextNS > 0 && RightAfter(r.GapNS) }

// copying is the copies of a process's first thread, as they are read.
type copying struct {
	waiting []piece // whose step has not ended yet
	read    int64   // when the latest copy began, whatever it was
}

// piece is one copy that counts.
type piece struct{ at, end, ns, bytes int64 }

const (
	// mostWaiting copies are kept until the row that ends their step is read; beyond it the older half is of the step
	// that lasts.
	mostWaiting = 1 << 14
	// mostBehind is how many batches wait at the most for the copies of their steps to be read. A copy's row is written
	// when the thread makes its next call of those that are watched, mostly in the same step.
	mostBehind = 256
)

func (j *joiner) copy(part *traces.Part, r *traces.Copy) {
	l := j.loops[Process{part, r.Proc}]
	if l == nil || !r.Main || Twice(j.drivers, part, r) {
		return
	}
	at := j.Of(part, r.TsNS)
	l.copies.read = max(l.copies.read, at)
	if r.Direction != "to-device" || r.Capturing || r.Result != 0 {
		return
	}
	p := piece{at, at + InCopy(r), InCopy(r), max(r.Bytes, 0)}
	if WaitsRightAfter(r) {
		p.end += r.GapNS
	}
	for _, d := range slices.Backward(l.delivered) { // its row comes late
		if s := d.Stages[Step]; s.Known() && s.Begin <= at && at < s.End {
			d.take(p)
			return
		}
	}
	l.copies.waiting = append(l.copies.waiting, p)
	if len(l.copies.waiting) > mostWaiting {
		for _, p := range l.copies.waiting[:mostWaiting/2] {
			l.step.take(p)
		}
		l.copies.waiting = slices.Delete(l.copies.waiting, 0, mostWaiting/2)
	}
}

// end gives a step what was copied until a time.
func (c *copying) end(b *Batch, until int64) {
	c.waiting = slices.DeleteFunc(c.waiting, func(p piece) bool {
		if p.at < until {
			b.take(p)
		}
		return p.at < until
	})
}

// take a copy, unless it began before the step; nil: there was no step yet.
func (b *Batch) take(p piece) {
	if b == nil || p.at < b.Stages[Wait].End {
		return
	}
	i := &b.Stages[H2D]
	if b.Copied.Copies == 0 {
		i.Begin = p.at
	}
	i.Begin, i.End = min(i.Begin, p.at), max(i.End, p.at, p.end)
	b.Copied = Copied{b.Copied.Copies + 1, max(b.Copied.Bytes+p.bytes, b.Copied.Bytes), max(b.Copied.NS+p.ns, b.Copied.NS)}
}

// copiesRead reports whether the copies of a step were, so far as they are waited for: a thread's rows are in the order of
// its calls.
func (j *joiner) copiesRead(l *loop, d *due, behind int) bool {
	return j.copied.part > d.at.part || l.copies.read >= d.Stages[Step].End || behind > mostBehind
}

func (c *copying) awaited(b *Batch) bool { return c.read > 0 && c.read < b.Stages[Step].End }

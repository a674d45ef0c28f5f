package stages

import (
	"iter"
	"math"
	"time"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Batch is one batch on its way: what is known of it, from the rows of four tables.
type Batch struct {
	Process   *timeline.Process // whose training loop it is for
	Loader    *timeline.Loader  // nil: not known
	Object    uint32            // Loader.Loader and Pass.Pass as recorded
	Pass      uint32
	Number    uint32               // in its pass, as BatchPut.Batch
	Worker    *timeline.WorkerPass // who fetched it; nil: not known
	Fetch     uint32               // BatchFetch.Fetch and BatchFetch.Pass, of Worker
	Local     uint32
	Samples   int32 // that were fetched
	Delivered bool  // the loop got it
	Open      bool  // the rows end before it does: more may come of it
	Awaited   bool  // its process copies to a device, and nothing was seen of that after its step: more may come of it
	InFlight  int   // batches of its pass that were asked for and not delivered yet, when the loop got it
	Stages    [Count]Interval
	Copied    Copied // in its step
}

// Begin is when it was first heard of.
func (b *Batch) Begin() int64 {
	begin := int64(math.MaxInt64)
	for _, s := range b.Stages {
		if s.Known() {
			begin = min(begin, s.Begin)
		}
	}
	return begin
}

// End is the last that was heard of it.
func (b *Batch) End() (end int64) {
	for _, s := range b.Stages {
		if s.Known() {
			end = max(end, s.End)
		}
	}
	return end
}

// Known reports whether any time of it is.
func (b *Batch) Known() bool { return b.End() > 0 }

const (
	// late is how much later in the order of the tables a row may come than one of
	// the same time: a recorder empties the rings of processes one after another,
	// and flushes twice a second.
	late = int64(5 * time.Second)
	// mostOpen is how many batches of a process may be on their way at once; beyond
	// it the oldest is given up as complete. A loader has workers x prefetch_factor.
	mostOpen = 1 << 14
)

// Each calls fn with each batch of a run, those of one process in the order of
// their deliveries; those that nobody took come when their pass has ended. The
// four tables are read side by side, so memory is bounded by the batches that
// are on their way at one time.
func Each(run *traces.Run, t *timeline.Timeline, c *Clock, fn func(*Batch) error) error {
	j := &joiner{Clock: c, timeline: t, loops: map[Process]*loop{}, objects: Loaders(t), parts: map[*traces.Part]int{}, fn: fn,
		drivers: Drivers(run)}
	for _, p := range t.Processes {
		j.loops[Process{p.Part, p.Proc}] = &loop{process: p, open: map[id]*Batch{}, upto: map[uint32]reached{}, asked: map[uint32]reached{}}
	}
	for i, p := range run.Parts {
		j.parts[p] = i
	}
	puts, fetches, nexts := newStream[traces.BatchPut](j, run), newStream[traces.BatchFetch](j, run), newStream[traces.BatchNext](j, run)
	copies := newStream[traces.Copy](j, run)
	defer puts.stop()
	defer fetches.stop()
	defer nexts.stop()
	defer copies.stop()
	for j.copied = copies.at; j.err == nil && (puts.more || fetches.more || nexts.more || copies.more); {
		switch { // of equal times in the order of a batch's way
		case copies.more && !copies.after(&puts.at) && !copies.after(&fetches.at) && !copies.after(&nexts.at):
			j.copy(copies.part, &copies.row)
			copies.next()
			j.copied = copies.at
		case !puts.after(&fetches.at) && !puts.after(&nexts.at):
			j.put(puts.part, &puts.row)
			puts.next()
		case !fetches.after(&nexts.at):
			j.fetch(fetches.part, &fetches.row)
			fetches.next()
		default:
			j.next(nexts.part, &nexts.row)
			nexts.next()
		}
		j.seen = fetches.at
	}
	for _, p := range t.Processes {
		j.finish(j.loops[Process{p.Part, p.Proc}])
	}
	return j.err
}

// moment is a place in the order in which rows are read.
type moment struct {
	part int
	ts   int64
}

func (m moment) after(o moment) bool { return m.part > o.part || m.part == o.part && m.ts > o.ts }

// stream is the rows of one table.
type stream[T any] struct {
	pull func() (*traces.Part, T, bool)
	stop func()
	head func(*T) int64
	j    *joiner
	part *traces.Part
	row  T
	at   moment // the latest so far
	more bool
}

func newStream[T traces.BatchPut | traces.BatchFetch | traces.BatchNext | traces.Copy](j *joiner, run *traces.Run) *stream[T] {
	s := &stream[T]{j: j, head: func(r *T) int64 { return headOf(r).TsNS }}
	s.pull, s.stop = iter.Pull2(traces.Rows[T](run))
	s.next()
	return s
}

func headOf(row any) traces.Head {
	switch r := row.(type) {
	case *traces.BatchPut:
		return r.Head
	case *traces.BatchFetch:
		return r.Head
	case *traces.Copy:
		return r.Head
	default:
		return row.(*traces.BatchNext).Head
	}
}

func (s *stream[T]) next() {
	if s.part, s.row, s.more = s.pull(); !s.more {
		s.at = moment{math.MaxInt, math.MaxInt64}
		return
	}
	at := moment{s.j.parts[s.part], s.head(&s.row)}
	if at.part > s.at.part || at.ts > s.at.ts {
		s.at = at
	}
}

func (s *stream[T]) after(o *moment) bool { return !s.more || s.at.after(*o) }

// joiner puts rows together to batches.
type joiner struct {
	*Clock
	timeline *timeline.Timeline
	loops    map[Process]*loop
	objects  map[Object]*timeline.Loader
	parts    map[*traces.Part]int
	seen     moment // how far batch_fetch was read
	drivers  map[Process]bool
	copied   moment // and copy
	fn       func(*Batch) error
	err      error
}

// id is a batch within its process.
type id struct{ object, pass, number uint32 }

// loop is a process that takes batches.
type loop struct {
	process *timeline.Process
	open    map[id]*Batch // asked for or fetched, and not delivered
	// delivered are handed on in this order, once their fetch was read or cannot come any more.
	delivered []*due
	step      *Batch             // the last one that was delivered: its step lasts
	upto      map[uint32]reached // of each DataLoader object
	asked     map[uint32]reached // the same of the batches that were asked for
	copies    copying
}

// reached is how far the deliveries of a DataLoader object have come: rows of what lies before come too late.
type reached struct {
	pass, number uint32
	ended        bool
}

type due struct {
	*Batch
	at      moment // of its delivery
	stepped bool   // its step has ended, or there will be no sign of that
}

// batch is the one of a row; nil: it was handed on already.
func (j *joiner) batch(l *loop, k id) *Batch {
	if b := l.open[k]; b != nil {
		return b
	}
	for _, d := range l.delivered { // before its fetch was read
		if d.Object == k.object && d.Pass == k.pass && d.Number == k.number {
			return d.Batch
		}
	}
	if at, ok := l.upto[k.object]; ok && (k.pass < at.pass || k.pass == at.pass && (at.ended || k.number <= at.number)) {
		return nil
	}
	b := &Batch{Process: l.process, Object: k.object, Pass: k.pass, Number: k.number,
		Loader: j.objects[Object{Process{l.process.Part, l.process.Proc}, k.object}]}
	l.open[k] = b
	if len(l.open) > mostOpen {
		j.drop(l, func(o id) bool { return o != k })
	}
	return b
}

func (j *joiner) put(part *traces.Part, r *traces.BatchPut) {
	l := j.loops[Process{part, r.Proc}]
	if l == nil || r.First > 0 || r.Worker < 0 { // without workers nothing is queued
		return
	}
	if a, ok := l.asked[r.Loader]; !ok || r.Pass != a.pass || r.Batch > a.number {
		l.asked[r.Loader] = reached{pass: r.Pass, number: r.Batch}
	}
	if b := j.batch(l, id{r.Loader, r.Pass, r.Batch}); b != nil {
		b.Stages[Index] = j.OfPut(part, r)
		b.queued()
	}
}

// queued is known when both ends of the queue are. The order in which the rows are read is nobody's promise.
func (b *Batch) queued() {
	if i, f := b.Stages[Index], b.Stages[Fetch]; i.Known() && f.Known() {
		b.Stages[IndexQueue] = Interval{i.End, max(f.Begin, i.End)}
	}
}

func (j *joiner) fetch(part *traces.Part, r *traces.BatchFetch) {
	w := j.timeline.Worker(part, r.Proc, r.Loader, r.Pass, r.Worker)
	if w == nil {
		return
	}
	main := w.Pass.Loader.Process
	l := j.loops[Process{main.Part, main.Proc}]
	b := j.batch(l, id{w.Pass.Object, w.Pass.Recorded, r.Batch})
	if b == nil {
		return
	}
	did := j.OfFetch(part, r)
	b.Worker, b.Fetch, b.Local, b.Samples = w, r.Fetch, r.Pass, r.Samples
	b.Stages[Fetch], b.Stages[Collate] = did.Fetch, did.Collate
	b.queued()
	b.returned()
	j.flush(l)
}

// returned gives ResultQueue its begin; the delivery gives its end.
func (b *Batch) returned() {
	q := &b.Stages[ResultQueue]
	if c := b.Stages[Collate]; c.Known() && q.End > 0 && b.Worker != nil && b.Worker.Number >= 0 {
		*q = Interval{c.End, max(q.End, c.End)}
	}
}

func (j *joiner) next(part *traces.Part, r *traces.BatchNext) {
	l := j.loops[Process{part, r.Proc}]
	if l == nil {
		return
	}
	wait := j.OfNext(part, r)
	l.steps(wait.Begin)
	j.flush(l)
	switch r.Status {
	case "ok":
		k := id{r.Loader, r.Pass, r.Batch}
		b := j.batch(l, k)
		if b == nil || b.Delivered {
			break // out of order or twice: a hostile trace
		}
		delete(l.open, k)
		if at, ok := l.upto[k.object]; !ok || at.pass != k.pass || k.number > at.number {
			l.upto[k.object] = reached{pass: k.pass, number: k.number}
			if at.pass < k.pass { // one that was broken off tells no end
				j.drop(l, func(o id) bool { return o.object == k.object && o.pass < k.pass })
			}
		}
		b.Delivered, b.Stages[Wait] = true, wait
		if a := l.asked[k.object]; a.pass == k.pass && a.number > k.number {
			b.InFlight = int(a.number - k.number)
		}
		if r.ArrivedNS > 0 {
			b.Stages[ResultQueue].End = j.Of(part, r.ArrivedNS)
			b.returned()
		}
		l.delivered = append(l.delivered, &due{Batch: b, at: moment{j.parts[part], r.TsNS}})
		l.step = b
	case "exit": // what is left is dropped at the end
	default: // the pass has ended: what is left of it was thrown away
		j.drop(l, func(k id) bool { return k.object == r.Loader && k.pass <= r.Pass })
		l.upto[r.Loader] = reached{pass: r.Pass, ended: true}
	}
}

// steps ends the step that lasts.
func (l *loop) steps(called int64) {
	if l.step == nil {
		return
	}
	if end := l.step.Stages[Wait].End; called >= end {
		l.step.Stages[Step] = Interval{end, called}
	}
	l.copies.end(l.step, called)
	l.delivered[len(l.delivered)-1].stepped = true
	l.step = nil
}

// flush hands on what is complete.
func (j *joiner) flush(l *loop) {
	n := 0
	for _, d := range l.delivered {
		fetched := d.Stages[Fetch].Known() || j.seen.part > d.at.part || j.seen.ts > d.at.ts && j.seen.ts-d.at.ts > late ||
			len(l.delivered)-n > mostOpen
		if !d.stepped || !fetched || !j.copiesRead(l, d, len(l.delivered)-n) {
			break
		}
		d.Awaited = l.copies.awaited(d.Batch)
		j.give(d.Batch)
		n++
	}
	l.delivered = l.delivered[n:]
}

// drop hands on batches that nobody took.
func (j *joiner) drop(l *loop, which func(id) bool) {
	for _, k := range sorted(l.open) {
		if which(k) {
			j.give(l.open[k])
			delete(l.open, k)
		}
	}
}

func (j *joiner) finish(l *loop) {
	for _, d := range l.delivered {
		d.Open, d.Awaited = !d.stepped, l.copies.awaited(d.Batch)
		j.give(d.Batch)
	}
	for _, b := range l.open {
		b.Open = true
	}
	j.drop(l, func(id) bool { return true })
}

func (j *joiner) give(b *Batch) {
	q := &b.Stages[ResultQueue]
	if q.Begin == 0 { // only its end is known
		*q = Interval{}
	}
	if !b.Stages[Step].Known() {
		b.Stages[H2D], b.Copied = Interval{}, Copied{}
	}
	if !b.Delivered && b.Samples == 0 && b.Stages[Fetch].Known() {
		return // the end of an IterableDataset, or its fetch failed
	}
	if j.err == nil && b.Known() {
		j.err = j.fn(b)
	}
}

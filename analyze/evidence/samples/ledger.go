// Package samples is the ledger: which sample each rank was given, in which
// pass, through which worker, in bounded memory. It says which datasets of
// several processes are one.
package samples

import (
	"sync"
	"sync/atomic"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/evidence/bounded"
	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/hash"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for the rules that ask who got a sample.
var Source = &collect.Source[*Attribution]{
	Name:   "samples",
	Tables: []string{"dataset", "attribute", "opened", "batch_put", "batch_fetch", "digest", "rng_slot", "rng_state"},
	Proof:  []string{"dataset", "batch_put", "batch_fetch", "digest", "rng_state"}, // the latter: whether other contents are other samples
	Shared: true,                                                                   // by number: each reader would keep as many entries
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Attribution] { return newLedger(mostEntries, mostDigests) },
}

// How many entries and digests are kept: 48 MB and 70 MB. Beyond that samples
// are left out, by their index: see bounded.
const (
	mostEntries = 2_000_000
	mostDigests = 500_000
)

// Ledger is the collector of Source, of all who read parts side by side. What a
// part says by itself is only touched by who reads that part.
type Ledger struct {
	mu      sync.Mutex // of all but zeros, while rows come in
	parts   map[*traces.Part]*part
	numbers map[stream]uint32 // of streams
	streams []stream
	entries bounded.Rows[entry]
	digests bounded.Rows[digest]

	last  uint32        // the stream of the row before
	zeros atomic.Uint32 // entries.Halved(), or less: most samples are left out without the lock
}

// stream is what came through one worker in one pass, as recorded. Loader and
// pass are as in BatchFetch; worker is asked where it is the loader's process
// that tells.
type stream struct {
	part         *traces.Part
	proc         uint32
	loader, pass uint32
	worker       int32
}

// asked is the worker of streams of indices, whichever worker got them.
const asked = int32(-9)

// entry is a sample that a loader asked for.
type entry struct {
	id     uint64 // Dataset.Dataset << 40 | index; number 0 is the loader's own dataset
	index  uint32 // in the loader's dataset
	stream uint32
	batch  uint32
}

// An id is dataset << indexBits | index.
const (
	indexBits = 40
	indexMask = 1<<indexBits - 1
)

// number decides whether an entry is kept: the same in all datasets that may be
// one.
func (e *entry) number() uint64 { return e.id & indexMask }

// digest is what a sample contains.
type digest struct {
	index    int64 // in the loader's dataset; -1: of an IterableDataset
	position uint32
	stream   uint32
	batch    uint32
	digests.Digest
}

// number decides whether a digest is kept: the same for all workers, passes and
// ranks.
func (d *digest) number() uint64 {
	if d.index >= 0 {
		return uint64(d.index)
	}
	return uint64(d.position)
}

func newLedger(entries, digests int) *Ledger {
	return &Ledger{parts: map[*traces.Part]*part{}, numbers: map[stream]uint32{},
		entries: bounded.New(entries, (*entry).number), digests: bounded.New(digests, (*digest).number)}
}

// Add takes the rows of one batch.
func (l *Ledger) Add(b traces.Batch) {
	p := l.part(b.Part)
	switch rows := b.Rows.(type) {
	case []traces.BatchPut:
		var taken []entry
		for i := range rows {
			taken = l.put(p, &rows[i], taken[:0])
		}
	case []traces.Digest:
		for i := range rows {
			l.digest(p, &rows[i])
		}
	default:
		p.add(b)
	}
}

func (l *Ledger) part(of *traces.Part) *part {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.parts[of]
	if p == nil {
		p = newPart(of)
		l.parts[of] = p
	}
	return p
}

// number of a stream.
func (l *Ledger) number(s stream) uint32 {
	if int(l.last) < len(l.streams) && l.streams[l.last] == s {
		return l.last
	}
	n, ok := l.numbers[s]
	if !ok {
		n = uint32(len(l.streams))
		l.numbers[s] = n
		l.streams = append(l.streams, s)
	}
	l.last = n
	return n
}

// put takes a row; taken is room for those of its samples that may be kept.
func (l *Ledger) put(p *part, r *traces.BatchPut, taken []entry) []entry {
	if len(r.Indices) == 0 {
		return taken
	}
	named := len(r.IDs) == len(r.Indices)
	if named {
		p.name(r)
	}
	e, zeros := entry{batch: r.Batch}, uint(l.zeros.Load())
	for i, index := range r.Indices {
		id := index
		if named {
			id = r.IDs[i]
		}
		if id < 0 || !named && id > indexMask {
			continue
		}
		e.id, e.index = uint64(id), uint32(index)
		if hash.Low(e.number(), zeros) {
			taken = append(taken, e)
		}
	}
	l.keep(stream{p.of, r.Proc, r.Loader, r.Pass, asked}, taken)
	return taken
}

// keep entries of one stream, but for those that are left out by now.
func (l *Ledger) keep(s stream, taken []entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.number(s)
	for _, e := range taken {
		if l.entries.Takes(e.number()) {
			e.stream = n
			l.entries.Add(e)
		}
	}
	l.zeros.Store(uint32(l.entries.Halved()))
}

func (l *Ledger) digest(p *part, r *traces.Digest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := stream{p.of, r.Proc, r.Loader, r.Pass, r.Worker}
	d := digest{stream: l.number(s), batch: r.Batch}
	some := false
	for one := range digests.Of(r) {
		some = true
		d.index, d.position, d.Digest = one.Index, uint32(one.Position), one.Digest
		if l.digests.Takes(d.number()) {
			l.digests.Add(d)
		}
	}
	if _, ok := p.rows[s]; some && !ok {
		p.rows[s] = r.Seq
	}
	if names := digests.Names(r); names != nil && p.names[s] == nil {
		p.names[s] = names
	}
}

// Merge takes over what was collected from other parts.
func (l *Ledger) Merge(other collect.Collector[*Attribution]) {
	o := other.(*Ledger)
	for tp, p := range o.parts {
		l.parts[tp] = p
	}
	number := make([]uint32, len(o.streams))
	for i, s := range o.streams {
		number[i] = l.number(s)
	}
	entries, digests := o.entries.All(), o.digests.All()
	for i := range entries {
		entries[i].stream = number[entries[i].stream]
	}
	for i := range digests {
		digests[i].stream = number[digests[i].stream]
	}
	l.entries.Merge(&o.entries)
	l.digests.Merge(&o.digests)
	l.zeros.Store(uint32(l.entries.Halved()))
}

// Package samples is the ledger: which sample each rank was given, in which
// pass, through which worker, in bounded memory. It says which datasets of
// several processes are one, and what its samplers promise.
package samples

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for the rules that ask who got a sample.
var Source = &collect.Source[*Attribution]{
	Name:   "samples",
	Tables: []string{"loader", "dataset", "attribute", "opened", "batch_put", "batch_fetch", "digest", "rng_slot", "rng_state"},
	Proof:  []string{"dataset", "batch_put", "batch_fetch", "digest"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Attribution] { return newLedger(mostEntries, mostDigests) },
}

// Tables is what tells who got a sample; a gap in one of them is never clean.
var Tables = []string{"process", "loader", "dataset", "pass", "worker", "batch_put", "batch_fetch", "batch_next", "digest"}

// How many entries and digests are kept: 96 MB and 56 MB. Beyond that samples
// are left out, by their index: see bounded.
const (
	mostEntries = 4_000_000
	mostDigests = 1_000_000
)

// Ledger is the collector of Source.
type Ledger struct {
	parts   map[*traces.Part]*part
	numbers map[stream]uint32 // of streams
	streams []stream
	entries bounded[entry]
	digests bounded[digest]

	last uint32 // the stream of the row before
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

// digest is what a sample contains.
type digest struct {
	content, meta [2]uint64
	index         int64 // in the loader's dataset; -1: of an IterableDataset
	position      uint32
	stream        uint32
	batch         uint32
	kind          byte
}

// Bits of digest.kind.
const (
	whole    = 1
	spread   = 2
	low      = 4
	texts    = 8
	partly   = 32
	kindMask = 3
)

// part is the small facts of one part.
type part struct {
	loaders  map[object]*traces.Loader
	datasets map[object]*traces.Dataset
	values   map[object][]traces.Attribute // of each dataset, at rank
	opened   map[uint32][]traces.Opened    // by process
	fetched  map[stream]int                // samples
	rows     map[stream]uint64             // the first row of digests
	within   map[object]map[int64]uint64   // of loaders of parts of datasets: ids of some indices
	drew     map[uint32]bool               // processes whose fetches draw random numbers
	resample map[uint32]bool               // processes where a stage of the dataset draws shards anew, by its name
}

// object is a loader or a dataset of a process, by its number.
type object struct{ proc, number uint32 }

// What is kept of small facts, for each dataset, process, loader.
const (
	mostValues = 256
	mostOpened = 256
	mostWithin = 1024
)

func newLedger(entries, digests int) *Ledger {
	return &Ledger{parts: map[*traces.Part]*part{}, numbers: map[stream]uint32{},
		entries: bounded[entry]{limit: entries, hash: func(e *entry) uint64 { return mix(e.id & indexMask) }},
		digests: bounded[digest]{limit: digests, hash: func(d *digest) uint64 { return mix(d.place()) }}}
}

// An id is dataset << indexBits | index.
const (
	indexBits = 40
	indexMask = 1<<indexBits - 1
)

// place decides whether a digest is kept: the same for all workers, passes and
// ranks.
func (d *digest) place() uint64 {
	if d.index >= 0 {
		return uint64(d.index)
	}
	return uint64(d.position)
}

// Add takes the rows of one batch.
func (l *Ledger) Add(b traces.Batch) {
	p := l.parts[b.Part]
	if p == nil {
		p = &part{map[object]*traces.Loader{}, map[object]*traces.Dataset{}, map[object][]traces.Attribute{}, map[uint32][]traces.Opened{}, map[stream]int{}, map[stream]uint64{},
			map[object]map[int64]uint64{}, map[uint32]bool{}, map[uint32]bool{}}
		l.parts[b.Part] = p
	}
	switch rows := b.Rows.(type) {
	case []traces.Loader:
		for i := range rows {
			r := rows[i]
			p.loaders[object{r.Proc, r.Loader}] = &r
		}
	case []traces.Dataset:
		for i := range rows {
			r := rows[i]
			p.datasets[object{r.Proc, r.Dataset}] = &r
		}
	case []traces.Attribute:
		for i := range rows {
			if r, k := &rows[i], (object{rows[i].Proc, rows[i].Dataset}); r.When == "rank" && len(p.values[k]) < mostValues {
				p.values[k] = append(p.values[k], *r)
			}
		}
	case []traces.Opened:
		for i := range rows {
			if r := &rows[i]; len(p.opened[r.Proc]) < mostOpened {
				p.opened[r.Proc] = append(p.opened[r.Proc], *r)
			}
		}
	case []traces.BatchPut:
		for i := range rows {
			l.put(b.Part, p, &rows[i])
		}
	case []traces.BatchFetch:
		for i := range rows {
			r := &rows[i]
			p.fetched[stream{b.Part, r.Proc, r.Loader, r.Pass, r.Worker}] += int(r.Samples)
		}
	case []traces.Digest:
		for i := range rows {
			l.digest(b.Part, p, &rows[i])
		}
	case []traces.RngSlot:
		for i := range rows {
			if resampled.MatchString(rows[i].Owner) {
				p.resample[rows[i].Proc] = true
			}
		}
	case []traces.RngState:
		for i := range rows {
			if rows[i].When == "after" {
				p.drew[rows[i].Proc] = true
			}
		}
	}
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

func (l *Ledger) put(tp *traces.Part, p *part, r *traces.BatchPut) {
	if len(r.Indices) == 0 {
		return
	}
	named := len(r.IDs) == len(r.Indices)
	if named {
		p.name(r)
	}
	e := entry{stream: l.number(stream{tp, r.Proc, r.Loader, r.Pass, asked}), batch: r.Batch}
	for i, index := range r.Indices {
		id := index
		if named {
			id = r.IDs[i]
		}
		if id < 0 || !named && id > indexMask {
			continue
		}
		if !l.entries.takes(mix(uint64(id) & indexMask)) {
			continue
		}
		e.id, e.index = uint64(id), uint32(index)
		l.entries.add(e)
	}
}

// name keeps the ids of some indices.
func (p *part) name(r *traces.BatchPut) {
	k := object{r.Proc, r.Loader}
	ids := p.within[k]
	if ids == nil {
		ids = map[int64]uint64{}
		p.within[k] = ids
	}
	for i, index := range r.Indices {
		if len(ids) >= mostWithin {
			return
		}
		if r.IDs[i] >= 0 {
			ids[index] = uint64(r.IDs[i])
		}
	}
}

func (l *Ledger) digest(tp *traces.Part, p *part, r *traces.Digest) {
	n := len(r.Positions)
	if len(r.Kinds) != n || len(r.Contents) != 16*n || len(r.Metas) != 16*n || len(r.Indices) != 0 && len(r.Indices) != n {
		return
	}
	s := stream{tp, r.Proc, r.Loader, r.Pass, r.Worker}
	if _, ok := p.rows[s]; !ok {
		p.rows[s] = r.Seq
	}
	d := digest{stream: l.number(s), batch: r.Batch}
	for i := range n {
		d.index, d.position, d.kind = -1, uint32(r.Positions[i]), r.Kinds[i]
		if len(r.Indices) == n {
			d.index = r.Indices[i]
		}
		if !l.digests.takes(mix(d.place())) {
			continue
		}
		d.content, d.meta = words(r.Contents[16*i:]), words(r.Metas[16*i:])
		l.digests.add(d)
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
	for i := range o.entries.rows {
		o.entries.rows[i].stream = number[o.entries.rows[i].stream]
	}
	for i := range o.digests.rows {
		o.digests.rows[i].stream = number[o.digests.rows[i].stream]
	}
	l.entries.merge(&o.entries)
	l.digests.merge(&o.digests)
}

// Opened is the files that a process has opened, as far as was seen.
func (l *Ledger) Opened(p *timeline.Process) []traces.Opened {
	if p == nil || l.parts[p.Part] == nil {
		return nil
	}
	return slices.Clone(l.parts[p.Part].opened[p.Proc])
}

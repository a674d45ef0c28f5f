package deliveries

import (
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// Sizes counts batches by how many samples they have.
type Sizes struct {
	Batches     int
	Least, Most int // samples in a batch
	Others      int // batches of fewer than Most, and of more than one sample
	Ones        []Singleton
	OnesInAll   int // Ones has no more than so many of them
	Last        uint32
}

// Singleton is a batch of one sample.
type Singleton struct {
	Batch uint32
	Seq   uint64 // of its row in batch_put or batch_fetch
}

// keptOnes of each pass (and worker, where they are fetched).
const keptOnes = 64

func (s *Sizes) add(batch uint32, samples int, seq uint64) {
	if s.Batches == 0 || samples < s.Least {
		s.Least = samples
	}
	switch {
	case samples == 1:
		s.OnesInAll++
		if len(s.Ones) < keptOnes {
			s.Ones = append(s.Ones, Singleton{batch, seq})
		}
	case samples > s.Most:
		if s.Most > 1 {
			s.Others = s.Batches - s.OnesInAll
		}
	case samples < s.Most:
		s.Others++
	}
	s.Most = max(s.Most, samples)
	s.Batches++
	s.Last = max(s.Last, batch)
}

// Pass is the batches of one pass.
type Pass struct {
	// Asked is how many samples the sampler put into each batch. It is empty for
	// an IterableDataset.
	Asked Sizes
	// Keyed tells that not all indices are integers: how many there are is not
	// in the trace.
	Keyed     bool
	Delivered int
	Last      uint64 // Seq of its last row in batch_next
	Stepped   int    // batches after which an optimizer stepped before the next one was asked for

	loader             uint32
	calls              int // of next()
	delivered, stepped batches
	put0               struct { // the batch whose rows are being read
		batch uint32
		seq   uint64
		n     int
		open  bool
	}
	last struct { // the delivery whose use is not known yet
		batch uint32
		steps uint64
		open  bool
	}
}

func (p *Pass) put(r *traces.BatchPut) {
	if len(r.Indices) == 0 {
		p.Keyed = p.Keyed || r.Keys != ""
		return
	}
	if p.put0.open && p.put0.batch == r.Batch && r.First > 0 {
		p.put0.n += len(r.Indices)
		return
	}
	p.flush()
	p.put0.batch, p.put0.seq, p.put0.n, p.put0.open = r.Batch, r.Seq, len(r.Indices), true
}

// flush counts the batch whose rows have all been read.
func (p *Pass) flush() {
	if p.put0.open {
		p.Asked.add(p.put0.batch, p.put0.n, p.put0.seq)
		p.put0.open = false
	}
}

func (p *Pass) next(r *traces.BatchNext) {
	p.flush()
	p.use(r.Steps)
	p.calls++
	p.Last = r.Seq
	p.last.open = r.Status == "ok"
	if p.last.open {
		p.last.batch, p.last.steps = r.Batch, r.Steps
		p.Delivered++
		p.delivered.add(r.Batch)
	}
}

// use settles what became of the last delivery: steps is the number of optimizer
// steps after it.
func (p *Pass) use(steps uint64) {
	if p.last.open && steps > p.last.steps {
		p.Stepped++
		p.stepped.add(p.last.batch)
	}
	p.last.open = false
}

// Reached reports whether a batch was delivered to the training loop.
func (p *Pass) Reached(batch uint32) bool { return p.delivered.has(batch) }

// AskedForOne reports whether the sampler put one sample into a batch.
func (p *Pass) AskedForOne(batch uint32) bool {
	return slices.ContainsFunc(p.Asked.Ones, func(o Singleton) bool { return o.Batch == batch })
}

// Use is what the training loop did with a batch.
type Use int

const (
	Unseen  Use = iota // no batch was asked for after it
	Passed             // no optimizer stepped before the next batch was asked for
	Stepped            // one did
)

// Use of a delivered batch.
func (p *Pass) Use(batch uint32) Use {
	switch {
	case p.stepped.has(batch):
		return Stepped
	case p.last.open && p.last.batch == batch:
		return Unseen
	}
	return Passed
}

// Fetched is what one worker (or the main process) fetched in one pass.
type Fetched struct {
	Sizes
	Samples int
}

func (f *Fetched) add(r *traces.BatchFetch) {
	batch := r.Batch
	if r.Worker < 0 { // it counts windows, those that failed among them
		batch = uint32(f.Batches)
	}
	f.Sizes.add(batch, int(r.Samples), r.Seq)
	f.Samples += int(r.Samples)
}

// batches is a set of batch numbers.
type batches struct {
	chunks map[uint32]*[chunk / 64]uint64
}

const chunk = 4096

func (b *batches) add(n uint32) {
	c := b.chunks[n/chunk]
	if c == nil {
		if b.chunks == nil {
			b.chunks = map[uint32]*[chunk / 64]uint64{}
		}
		c = new([chunk / 64]uint64)
		b.chunks[n/chunk] = c
	}
	c[n%chunk/64] |= 1 << (n % 64)
}

func (b *batches) has(n uint32) bool {
	c := b.chunks[n/chunk]
	return c != nil && c[n%chunk/64]&(1<<(n%64)) != 0
}

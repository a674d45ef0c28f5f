package batches

import (
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Requested is what the sampler of each pass asked for.
var Requested = &collect.Source[ByPass[Requests]]{
	Name:   "requested batches",
	Tables: []string{"loader", "batch_put"}, // which loaders share a dataset, before their rows
	Proof:  []string{"batch_put"},
	Uses:   []collect.Any{timeline.Source},
	New: func() collect.Collector[ByPass[Requests]] {
		return &requested{byPart[key, Requests]{}, map[*traces.Part]map[object]bool{}}
	},
}

// Requests is what the sampler of one pass asked for. There is nothing of an
// IterableDataset.
type Requests struct {
	Sizes        // of the batches, as they were asked for
	Samples  int // indices in all
	Max      int64
	Keyed    bool // keys that are no integers are among them: how many is not known
	Negative bool // indices below 0 are among them

	Sequence Sequence // in which order
	digest   contents // which, in any order
	kept     []int64  // those whose hash is low, where ranks share a dataset
	zeros    uint     // that the hash of those begins with
	open     pending  // the batch whose rows are being read
}

// Indexed reports whether all that a pass asked for is indices of samples.
func (q *Requests) Indexed() bool { return q.Samples > 0 && !q.Keyed && !q.Negative }

// pending is a batch whose rows are being read.
type pending struct {
	open  bool
	batch uint32
	seq   uint64
	n     int
}

// requested is the collector of Requested.
type requested struct {
	passes byPart[key, Requests]
	shared map[*traces.Part]map[object]bool // loaders whose dataset is dealt out to ranks
}

// object is a DataLoader object.
type object struct{ proc, loader uint32 }

// mostShared is how many passes of a DataLoader object, the first ones, have
// their indices kept.
const mostShared = 4

func (c *requested) Add(b traces.Batch) {
	switch rows := b.Rows.(type) {
	case []traces.Loader:
		for i := range rows {
			if r := &rows[i]; r.SamplerReplicas > 0 {
				if c.shared[b.Part] == nil {
					c.shared[b.Part] = map[object]bool{}
				}
				c.shared[b.Part][object{r.Proc, r.Loader}] = true
			}
		}
	case []traces.BatchPut:
		passes, shared := c.passes.part(b.Part), c.shared[b.Part]
		for i := range rows {
			r := &rows[i]
			at(passes, key{r.Proc, r.Loader, r.Pass}).add(r, r.Pass < mostShared && shared[object{r.Proc, r.Loader}])
		}
	}
}

func (c *requested) Merge(other collect.Collector[ByPass[Requests]]) {
	o := other.(*requested)
	c.passes.merge(o.passes)
	maps.Copy(c.shared, o.shared)
}

func (c *requested) Build(e *collect.Evidence) ByPass[Requests] {
	found := byPass(collect.Of(e, timeline.Source), c.passes)
	for _, q := range found {
		q.flush()
	}
	return found
}

// add takes a row. keep: which indices they are is of use beyond the pass.
func (q *Requests) add(r *traces.BatchPut, keep bool) {
	q.digest.add(r)
	q.Sequence.add(r)
	if len(r.Indices) == 0 {
		q.Keyed = q.Keyed || r.Keys != ""
		return
	}
	q.count(r)
	q.Samples += len(r.Indices)
	q.Max = max(q.Max, slices.Max(r.Indices))
	q.Negative = q.Negative || slices.Min(r.Indices) < 0
	if keep {
		q.keep(r.Indices)
	}
}

// count the samples of a batch, which may have several rows.
func (q *Requests) count(r *traces.BatchPut) {
	if q.open.open && q.open.batch == r.Batch && r.First > 0 {
		q.open.n += len(r.Indices)
		return
	}
	q.flush()
	q.open = pending{true, r.Batch, r.Seq, len(r.Indices)}
}

// flush counts the batch whose rows have all been read.
func (q *Requests) flush() {
	if q.open.open {
		q.Sizes.add(q.open.batch, q.open.n, q.open.seq)
		q.open = pending{}
	}
}

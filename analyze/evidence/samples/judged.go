package samples

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Attribution is the ledger of a run whose processes, passes and datasets are known:
// of samples that were delivered. What was fetched ahead and thrown away is not
// in it.
type Attribution struct {
	Passes []*Pass // by loader, number of the pass, rank

	ledger  *Ledger
	entries []entry // by id, index, pass
	reads   map[*timeline.WorkerPass]*Read
	same    map[datasetKey]sameness
	sure    map[*timeline.Pass]Sameness
}

// Pass is one pass of one rank.
type Pass struct {
	*timeline.Pass
	Object  *traces.Loader
	Samples int // delivered, of those that are looked at
}

// Judged joins the ledger with the timeline, once.
func (l *Ledger) Build(e *collect.Evidence) *Attribution {
	t := collect.Of(e, timeline.Source)
	j := &Attribution{ledger: l, reads: map[*timeline.WorkerPass]*Read{}, same: map[datasetKey]sameness{}, sure: map[*timeline.Pass]Sameness{}}
	passes := l.passes(t)
	j.number(passes)
	j.read(t)
	j.identify(t)
	j.name()
	return j
}

// passes of the streams of indices; nil where none is known.
func (l *Ledger) passes(t *timeline.Timeline) []*Pass {
	type key struct {
		part               *traces.Part
		proc, loader, pass uint32
	}
	known := map[key]*timeline.Pass{}
	for _, tl := range t.Loaders {
		for _, p := range tl.Passes {
			known[key{tl.Process.Part, tl.Process.Proc, p.Object, p.Recorded}] = p
		}
	}
	passes := make([]*Pass, len(l.streams))
	for i, s := range l.streams {
		if p := known[key{s.part, s.proc, s.loader, s.pass}]; p != nil && s.worker == asked {
			passes[i] = &Pass{Pass: p, Object: p.DataLoader()}
		}
	}
	return passes
}

// number replaces the streams of entries by the numbers of their passes, and
// drops what was not delivered.
func (j *Attribution) number(passes []*Pass) {
	for _, p := range passes {
		if p != nil {
			j.Passes = append(j.Passes, p)
		}
	}
	slices.SortFunc(j.Passes, func(a, b *Pass) int {
		return cmp.Or(cmp.Compare(a.Loader.ID, b.Loader.ID), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Loader.Rank(), b.Loader.Rank()),
			cmp.Compare(a.Loader.Process.Part.Name, b.Loader.Process.Part.Name), cmp.Compare(a.Loader.Process.Proc, b.Loader.Process.Proc))
	})
	at := map[*Pass]uint32{}
	for i, p := range j.Passes {
		at[p] = uint32(i)
	}
	numbers := make([]uint32, len(passes))
	for i, p := range passes {
		if p != nil {
			numbers[i] = at[p]
		}
	}
	kept := j.ledger.entries.rows[:0]
	for _, e := range j.ledger.entries.rows {
		p := passes[e.stream]
		if p == nil || !p.delivered(e.batch) {
			continue
		}
		e.stream = numbers[e.stream]
		p.Samples++
		kept = append(kept, e)
	}
	j.ledger.entries.rows, j.entries = nil, kept
}

// delivered reports whether a batch reached the training loop: surely, where
// batches may overtake each other.
func (p *Pass) delivered(batch uint32) bool {
	ahead := 0
	if !p.Object.InOrder && p.Object.NumWorkers > 1 {
		ahead = int(p.Object.NumWorkers) * max(int(p.Object.Prefetch), 1)
	}
	return p.Exhausted || int(batch) < p.Delivered-ahead
}

// name gives the entries the ids that are the same in all processes, and sorts
// them.
func (j *Attribution) name() {
	numbers := map[datasetKey]uint64{}
	for i := range j.entries {
		e := &j.entries[i]
		k := j.dataset(e)
		root := k
		if s, ok := j.same[k]; ok {
			root = s.root
		}
		n, ok := numbers[root]
		if !ok {
			n = uint64(len(numbers))
			numbers[root] = n
		}
		e.id = n<<indexBits | e.id&indexMask
	}
	slices.SortFunc(j.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.index, b.index), cmp.Compare(a.stream, b.stream), cmp.Compare(a.batch, b.batch))
	})
}

// dataset of an entry whose id is still as recorded.
func (j *Attribution) dataset(e *entry) datasetKey {
	p := j.Passes[e.stream]
	n := uint32(e.id >> indexBits)
	if n == 0 {
		n = p.Object.DatasetID
	}
	if n == 0 { // of an older trace: each loader's dataset is its own
		n = ^p.Object.Loader
	}
	return datasetKey{p.Loader.Process, n}
}

// Origin is the dataset that a sample comes from in the end, and its index there.
type Origin struct {
	Dataset int // equal where datasets are one, or hold the same
	Index   int64
}

// Given is one sample that a pass was given.
type Given struct {
	Pass  int // in Judged.Passes
	Batch int
	At    uint32 // its index in the loader's dataset
}

// Each gives each sample and all who were given it, by loader, pass and rank for each At. The list
// is reused.
func (j *Attribution) Each() iter.Seq2[Origin, []Given] {
	return func(yield func(Origin, []Given) bool) {
		var list []Given
		for i := 0; i < len(j.entries); {
			id := j.entries[i].id
			list = list[:0]
			for ; i < len(j.entries) && j.entries[i].id == id; i++ {
				e := &j.entries[i]
				list = append(list, Given{int(e.stream), int(e.batch), e.index})
			}
			if !yield(Origin{int(id >> indexBits), int64(id & indexMask)}, list) {
				return
			}
		}
	}
}

// Scale is for how many samples each one stands that was looked at.
func (j *Attribution) Scale() int { return 1 << min(j.ledger.entries.k, 30) }

// SamplingNote says which samples were left out, or is "".
func (j *Attribution) SamplingNote() string { return j.ledger.entries.told("indices") }

// ContentsSamplingNote says the same of contents.
func (j *Attribution) ContentsSamplingNote() string { return j.ledger.digests.told("positions") }

// Files that all of some processes have opened: their paths, and the rows.
func (j *Attribution) Files(processes []*timeline.Process) (paths []string, seqs []uint64) {
	count, first := map[string]int{}, map[string]traces.Opened{}
	for _, p := range processes {
		seen := map[string]bool{}
		for _, o := range j.ledger.Opened(p) {
			if !seen[o.Path] {
				seen[o.Path] = true
				count[o.Path]++
				if _, ok := first[o.Path]; !ok {
					first[o.Path] = o
				}
			}
		}
	}
	for path, n := range count {
		if n == len(processes) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		seqs = append(seqs, first[path].Seq)
	}
	return paths, seqs
}

// ClassName is a class without its module.
func ClassName(qualified string) string {
	return qualified[strings.LastIndexByte(qualified, '.')+1:]
}

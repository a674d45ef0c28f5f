package samples

import (
	"cmp"
	"iter"
	"slices"

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
	entries []entry          // by id, index, pass
	roots   []datasetKey     // by Origin.Dataset
	of      map[int][]uint32 // by loader: its entries
	ends    map[int]int64    // by Origin.Dataset: its length, as far as it was asked for
	reads   map[*timeline.WorkerPass]*Read
	same    map[datasetKey]sameness
	sure    map[*timeline.Process]*surety
	again   map[*timeline.Loader]bool // Recurs
}

// Pass is one pass of one rank.
type Pass struct {
	*timeline.Pass
	Object  *traces.Loader
	Samples int // delivered, of those that are looked at
}

// Build joins the ledger with the timeline.
func (l *Ledger) Build(e *collect.Evidence) *Attribution {
	t := collect.Of(e, timeline.Source)
	j := &Attribution{ledger: l, of: map[int][]uint32{}, ends: map[int]int64{}, reads: map[*timeline.WorkerPass]*Read{},
		same: map[datasetKey]sameness{}, sure: map[*timeline.Process]*surety{}, again: map[*timeline.Loader]bool{}}
	j.number(l.passes(t))
	j.read(t)
	scopes := j.scopes()
	j.identify(t, scopes)
	j.name(scopes)
	j.index()
	return j
}

// index the sorted entries by loader, and how far each dataset was asked for.
func (j *Attribution) index() {
	all := map[int]int{} // entries of each loader
	for _, p := range j.Passes {
		all[p.Loader.ID] += p.Samples
	}
	at := map[int]*[]uint32{}
	for loader, n := range all {
		list := make([]uint32, 0, n)
		at[loader] = &list
	}
	ofPass := make([]*[]uint32, len(j.Passes))
	for i, p := range j.Passes {
		ofPass[i] = at[p.Loader.ID]
	}
	for i := range j.entries {
		e := &j.entries[i]
		list := ofPass[e.stream]
		*list = append(*list, uint32(i))
		if dataset := e.id >> indexBits; i+1 == len(j.entries) || j.entries[i+1].id>>indexBits != dataset {
			j.ends[int(dataset)] = int64(e.id&indexMask) + 1
		}
	}
	for loader, list := range at {
		j.of[loader] = *list
	}
}

// Gap says what was not seen of a loader although no row is lost: workers that
// read an IterableDataset where nobody looked. What a sampler deals out is known
// without them.
func (j *Attribution) Gap(ranks timeline.Ranks) string {
	if !slices.ContainsFunc(ranks, (*timeline.Loader).Iterable) {
		return ""
	}
	return ranks.Distinct((*timeline.Loader).Unwatched)
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
		x, y := a.Loader.Process, b.Loader.Process
		return cmp.Or(cmp.Compare(a.Loader.ID, b.Loader.ID), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Loader.Rank(), b.Loader.Rank()),
			cmp.Compare(x.Part.Name, y.Part.Name), cmp.Compare(x.Proc, y.Proc))
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
	all := j.ledger.entries.Release()
	j.entries = all[:0]
	for _, e := range all {
		p := passes[e.stream]
		if p == nil || !delivered(p.Pass, e.batch) {
			continue
		}
		e.stream = numbers[e.stream]
		p.Samples++
		j.entries = append(j.entries, e)
	}
}

// delivered reports whether a batch reached the training loop: surely, where
// batches may overtake each other.
func delivered(p *timeline.Pass, batch uint32) bool {
	ahead, o := 0, p.DataLoader()
	if !o.InOrder && o.NumWorkers > 1 {
		ahead = int(o.NumWorkers) * max(int(o.Prefetch), 1)
	}
	return p.Exhausted || int(batch) < p.Delivered-ahead
}

// scope is where an id as recorded means one dataset: a pass, and a number.
type scope struct {
	pass    uint32
	dataset uint64
}

func (e *entry) scope() scope { return scope{e.stream, e.id >> indexBits} }

// scopes of all entries, and the datasets that they mean.
func (j *Attribution) scopes() map[scope]datasetKey {
	of := map[scope]datasetKey{}
	var last scope
	for i := range j.entries {
		s := j.entries[i].scope()
		if s == last && i > 0 { // most are
			continue
		}
		last = s
		if _, ok := of[s]; !ok {
			of[s] = j.dataset(s)
		}
	}
	return of
}

// name gives the entries the ids that are the same in all processes, and sorts
// them.
func (j *Attribution) name(scopes map[scope]datasetKey) {
	roots := map[scope]datasetKey{}
	var all []datasetKey
	for s, root := range scopes {
		if same, ok := j.same[root]; ok {
			root = same.root
		}
		roots[s] = root
		all = append(all, root)
	}
	slices.SortFunc(all, compareDatasets)
	all = slices.Compact(all)
	j.roots = all
	numbers := map[scope]uint64{}
	for s, root := range roots {
		n, _ := slices.BinarySearchFunc(all, root, compareDatasets)
		numbers[s] = uint64(n)
	}
	var last scope
	var n uint64
	for i := range j.entries {
		e := &j.entries[i]
		if s := e.scope(); s != last || i == 0 {
			last, n = s, numbers[s]
		}
		e.id = n<<indexBits | e.id&indexMask
	}
	sortEntries(j.entries)
}

func compareDatasets(a, b datasetKey) int {
	x, y := a.process, b.process
	return cmp.Or(cmp.Compare(x.Part.Name, y.Part.Name), cmp.Compare(x.Proc, y.Proc), cmp.Compare(a.number, b.number))
}

// dataset that the ids of a scope are of.
func (j *Attribution) dataset(s scope) datasetKey {
	p := j.Passes[s.pass]
	n := uint32(s.dataset)
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
	Pass  int // in Attribution.Passes
	Batch int
	At    uint32 // its index in the loader's dataset
}

// Each gives each sample and all who were given it, by loader, pass and rank for
// each At. The list is reused.
func (j *Attribution) Each() iter.Seq2[Origin, []Given] {
	return each(len(j.entries), func(i int) *entry { return &j.entries[i] })
}

// eachOf is the same, of one loader.
func (j *Attribution) eachOf(loader int) iter.Seq2[Origin, []Given] {
	of := j.of[loader]
	return each(len(of), func(i int) *entry { return &j.entries[of[i]] })
}

func each(n int, at func(int) *entry) iter.Seq2[Origin, []Given] {
	return func(yield func(Origin, []Given) bool) {
		var list []Given
		for i := 0; i < n; {
			id := at(i).id
			for list = list[:0]; i < n && at(i).id == id; i++ {
				e := at(i)
				list = append(list, Given{int(e.stream), int(e.batch), e.index})
			}
			if !yield(Origin{int(id >> indexBits), int64(id & indexMask)}, list) {
				return
			}
		}
	}
}

// Scale is for how many samples each one stands that was looked at.
func (j *Attribution) Scale() int { return 1 << min(j.ledger.entries.Halved(), 30) }

// Halved is how often one half of all indices was left out, and one half of what
// they contain.
func (j *Attribution) Halved() (indices, contents uint) {
	return j.ledger.entries.Halved(), j.ledger.digests.Halved()
}

// Files that all of some processes have opened, as far as was seen: their paths,
// and the rows.
func (j *Attribution) Files(processes []*timeline.Process) (paths []string, seqs []uint64) {
	count, first := map[string]int{}, map[string]traces.Opened{}
	for _, p := range processes {
		part := j.ledger.parts[p.Part]
		if part == nil {
			continue
		}
		seen := map[string]bool{}
		for _, o := range part.opened[p.Proc] {
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

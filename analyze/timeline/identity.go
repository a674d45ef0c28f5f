package timeline

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// object is one DataLoader object of a process, with its passes.
type object struct {
	row    traces.Loader
	lost   bool // the row is made up
	passes []*passRows
	role   Role // of its passes; Unknown where they are not watched
	number int  // among those of its process
	until  int  // number of the last one that hands out the same dataset
}

// madeIn a process: its DataLoaders that were iterated, by number.
func madeIn(pr *procRows, p *Process) (all []*object) {
	rows := map[uint32]*traces.Loader{}
	for i := range pr.loaders {
		rows[pr.loaders[i].Loader] = &pr.loaders[i]
	}
	if last := pr.loop.recent; last != nil { // the process was killed, or the rows that follow are lost
		last.uses.unseen = true
	}
	passes := map[uint32][]*passRows{}
	for _, ps := range pr.passes {
		if ps.key.loader != 0 { // 0: a worker's own count
			passes[ps.key.loader] = append(passes[ps.key.loader], ps)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(passes)) {
		o := &object{passes: passes[n], role: Unknown}
		if row := rows[n]; row != nil {
			o.row = *row
		} else {
			o.lost = true
			o.row = traces.Loader{Head: traces.Head{Proc: p.Proc}, Loader: n, Length: -1, BatchSize: -1, NumWorkers: -1,
				Iterable: true} // the kind with more excuses
		}
		slices.SortStableFunc(o.passes, func(a, b *passRows) int { return cmp.Compare(a.key.pass, b.key.pass) })
		if pr.loop.watched() {
			o.settle()
		}
		all = append(all, o)
	}
	last := map[uint32]int{}
	for i, o := range slices.Backward(all) {
		if _, ok := last[o.row.Given]; !ok {
			last[o.row.Given] = i
		}
		o.number, o.until = i, last[o.row.Given]
	}
	return all
}

// settle what its deliveries were used for.
func (o *object) settle() {
	for _, ps := range o.passes {
		ps.watched = true
		ps.uses.settle()
		if role := ps.uses.role(); role == Train || o.role == Unknown {
			o.role = role
		}
	}
}

// loader finds the loader that an object belongs to: one made at the same place
// before, if that was no longer in use when this one was made. Otherwise they
// are two, and never compared: two sides of a pair, folds, teacher and student.
func (p *Process) loader(o *object) *Loader {
	var best *Loader
	var surest likeness
	for _, l := range p.Loaders {
		if how := l.like(o); how > surest && l.idleSince() <= o.row.TsNS {
			best, surest = l, how
		}
	}
	if best == nil {
		best = &Loader{Process: p, given: map[uint32]*object{}}
		p.Loaders = append(p.Loaders, best)
	}
	best.Objects = append(best.Objects, o.row)
	best.until = max(best.until, o.until)
	best.given[o.row.Given] = o
	if best.made == nil {
		best.made = o
	}
	return best
}

// likeness of an object to those of a loader.
type likeness int

const (
	other       likeness = iota
	sameKind             // another dataset of the same class and length, made in place of one that is used no more
	sameDataset          // the same dataset, in the same way
	sameSampler          // by the same sampler
)

// like says how an object is like those of a loader.
func (l *Loader) like(o *object) likeness {
	first := l.First()
	if o.row.File == "" || first.File != o.row.File || first.Line != o.row.Line || first.DatasetClass != o.row.DatasetClass {
		return other
	}
	if o.row.Given == 0 || first.Given == 0 { // an older trace, or what is not known
		if o.row.Given == first.Given && first.Stack == o.row.Stack && first.Length == o.row.Length {
			return sameKind
		}
		return other
	}
	if wayOf(first) != wayOf(&o.row) {
		return other
	}
	if m := l.given[o.row.Given]; m != nil {
		switch {
		case m.row.SamplerID == o.row.SamplerID && o.row.SamplerID != 0:
			return sameSampler
		case byDefault(&o.row) || m.role == o.role:
			return sameDataset
		}
	}
	if first.Length != o.row.Length || l.made.role != o.role || l.until > o.number {
		return other
	}
	return sameKind
}

// byDefault reports whether the sampler is of the kind that DataLoader makes
// itself: it is another one in each object.
func byDefault(l *traces.Loader) bool {
	const torch = "torch.utils.data.sampler."
	return l.Sampler == torch+"RandomSampler" || l.Sampler == torch+"SequentialSampler" ||
		l.Sampler == "torch.utils.data.dataloader._InfiniteConstantSampler"
}

// way is how a loader hands out its dataset.
func wayOf(l *traces.Loader) string {
	return l.Sampler + "\n" + l.Samplers + "\n" + l.Shuffle + l.Replacement
}

// idleSince is the end of the loader's last pass so far.
func (l *Loader) idleSince() int64 {
	var end int64
	for _, p := range l.Passes {
		end = max(end, p.End)
	}
	return end
}

// identity of a loader within its rank, as other ranks have it too.
type identity struct {
	file, stack, dataset, way string
	line                      int32
	length                    int64
	role                      Role
}

func identityOf(l *Loader) identity {
	o := l.First()
	id := identity{file: o.File, dataset: o.DatasetClass, way: wayOf(o), line: o.Line, length: o.Length, role: l.Role}
	if o.Given == 0 {
		id = identity{file: o.File, stack: o.Stack, dataset: o.DatasetClass, line: o.Line, length: o.Length}
	}
	return id
}

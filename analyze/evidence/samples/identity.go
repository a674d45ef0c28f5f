package samples

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Sameness is how sure it is that two processes' datasets are one: that an index
// names the same sample in both.
type Sameness int

const (
	Unknown Sameness = iota // class and length agree, nothing else is known, or the contents do not agree
	Alike                   // what hangs on them agrees: the lists that the samples are read from
	Same                    // the contents at equal indices agree
)

// datasetKey is a dataset of a process, by its number.
type datasetKey struct {
	process *timeline.Process
	number  uint32
}

// sameness is which dataset of another process this one is, and how sure that
// is.
type sameness struct {
	root datasetKey
	sure Sameness
}

// surety is how sure it is of all datasets of a process, and of each.
type surety struct {
	all Sameness
	of  map[uint32]Sameness
}

// identify finds, for each loader on several ranks, which of the ranks' datasets
// are one: the first rank's is what those of the others are compared with.
func (j *Attribution) identify(t *timeline.Timeline, scopes map[scope]datasetKey) {
	used := j.used(scopes)
	seen := j.observe()
	taken := map[*timeline.Process]map[datasetKey]bool{}
	for _, ranks := range t.ByLoader() {
		if len(ranks) < 2 {
			continue
		}
		var root []datasetKey
		for _, l := range ranks {
			mine := used[l]
			if root == nil {
				root = mine
			}
			if len(mine) != len(root) {
				continue
			}
			if taken[l.Process] == nil {
				taken[l.Process] = map[datasetKey]bool{}
			}
			for i, k := range mine {
				j.join(root[i], k, ranks[0], l, seen, taken[l.Process])
			}
		}
	}
	for k, s := range j.same {
		at := j.sure[k.process]
		if at == nil {
			at = &surety{all: Same, of: map[uint32]Sameness{}}
			j.sure[k.process] = at
		}
		at.all, at.of[k.number] = min(at.all, s.sure), s.sure
	}
}

// join a dataset with the one that takes its place on the first rank, unless one
// of them has another: one index, one sample, so two datasets of a process stay
// two.
func (j *Attribution) join(to, k datasetKey, first, l *timeline.Loader, seen map[datasetKey]*observed, taken map[datasetKey]bool) {
	if s, ok := j.same[to]; ok {
		to = s.root
	}
	if _, done := j.same[k]; done || taken[to] {
		return
	}
	sure := Same
	if to != k {
		if !j.kin(to, k, first, l) {
			return
		}
		sure = compare(seen[to], seen[k], j.ledger.values(to), j.ledger.values(k))
	}
	j.same[k] = sameness{to, sure}
	taken[to] = true
}

// used is the datasets that each loader's samples come from, by number.
func (j *Attribution) used(scopes map[scope]datasetKey) map[*timeline.Loader][]datasetKey {
	used := map[*timeline.Loader][]datasetKey{}
	for s, k := range scopes {
		l := j.Passes[s.pass].Loader
		used[l] = append(used[l], k)
	}
	for l, keys := range used {
		slices.SortFunc(keys, func(a, b datasetKey) int { return cmp.Compare(a.number, b.number) })
		used[l] = slices.Compact(keys)
	}
	return used
}

// Sure is how sure it is that an index names one sample in passes of two
// processes, over the dataset of one loader.
func (j *Attribution) Sure(a, b *Pass) Sameness {
	if a.Loader.Process == b.Loader.Process {
		return Same
	}
	return min(j.SureOf(a.Pass), j.SureOf(b.Pass))
}

// SureOf is how sure it is that the samples of a pass are those of the other
// ranks at the same indices.
func (j *Attribution) SureOf(p *timeline.Pass) Sameness {
	at := j.sure[p.Loader.Process]
	if at == nil {
		return Same
	}
	number := p.DataLoader().DatasetID
	if number == 0 {
		return at.all
	}
	if sure, ok := at.of[number]; ok {
		return sure
	}
	return Same
}

// kin reports whether two datasets have one class and one length, as far as is
// known.
func (j *Attribution) kin(a, b datasetKey, la, lb *timeline.Loader) bool {
	x, y := la.First(), lb.First()
	if x.DatasetClass != y.DatasetClass || x.Length >= 0 && y.Length >= 0 && x.Length != y.Length {
		return false
	}
	d, e := j.ledger.datasetOf(a), j.ledger.datasetOf(b)
	return d == nil || e == nil || d.Class == e.Class && (d.Length < 0 || e.Length < 0 || d.Length == e.Length)
}

func (l *Ledger) datasetOf(k datasetKey) *traces.Dataset {
	if p := l.parts[k.process.Part]; p != nil {
		return p.datasets[object{k.process.Proc, k.number}]
	}
	return nil
}

func (l *Ledger) values(k datasetKey) []traces.Attribute {
	if p := l.parts[k.process.Part]; p != nil {
		return p.values[object{k.process.Proc, k.number}]
	}
	return nil
}

// Lists are the lists and tuples that hang on the dataset of a loader in its
// process. None, if it is put together of others.
func (j *Attribution) Lists(l *timeline.Loader) (lists []traces.Attribute) {
	if l.First().DatasetID == 0 {
		return nil
	}
	for _, r := range j.ledger.values(datasetKey{l.Process, l.First().DatasetID}) {
		if r.Items > 0 && (r.Class == "builtins.list" || r.Class == "builtins.tuple") {
			lists = append(lists, r)
		}
	}
	slices.SortStableFunc(lists, func(a, b traces.Attribute) int { return cmp.Compare(a.Path, b.Path) })
	return lists
}

// observed is what was seen of a dataset's contents, by index.
type observed struct {
	contents map[int64]digests.Sum
	metas    map[int64]digests.Sum
	random   bool // an index had two contents, or its process's fetches draw random numbers
}

// observe all datasets of all processes.
func (j *Attribution) observe() map[datasetKey]*observed {
	seen, drew := map[datasetKey]*observed{}, map[*timeline.Process]bool{}
	for w, r := range j.reads {
		l, loader := w.Pass.Loader, w.Pass.DataLoader()
		part := j.ledger.parts[l.Process.Part]
		drew[l.Process] = drew[l.Process] || w.Process != nil && part.drew[w.Process.Proc]
		within := part.within[object{l.Process.Proc, loader.Loader}]
		for i := range r.digests {
			d := &r.digests[i]
			k, index := datasetKey{l.Process, loader.DatasetID}, d.index
			if loader.DatasetID == 0 {
				id, ok := within[index]
				if !ok {
					continue
				}
				k.number, index = uint32(id>>indexBits), int64(id&indexMask)
			}
			if index < 0 {
				continue
			}
			if seen[k] == nil {
				seen[k] = &observed{contents: map[int64]digests.Sum{}, metas: map[int64]digests.Sum{}}
			}
			seen[k].add(index, &d.Digest)
		}
	}
	for k, o := range seen {
		o.random = o.random || drew[k.process]
	}
	return seen
}

func (o *observed) add(index int64, d *digests.Digest) {
	if d.Texts() {
		o.metas[index] = d.Meta
	}
	if !d.Whole() {
		return
	}
	if c, ok := o.contents[index]; ok && c != d.Content {
		o.random = true
	}
	o.contents[index] = d.Content
}

// How many samples must agree.
const (
	enoughContents = 8
	enoughMetas    = 32
)

// compare two datasets of one class and length; nil: nothing was seen of its
// contents.
func compare(o, p *observed, mine, theirs []traces.Attribute) Sameness {
	if o == nil || p == nil {
		o, p = &observed{}, &observed{}
	}
	differ := 0
	different := map[digests.Sum]bool{}
	for index, c := range o.contents {
		switch d, ok := p.contents[index]; {
		case !ok:
		case c == d:
			different[c] = true
		default:
			differ++
		}
	}
	random := o.random || p.random
	values := attributesAgree(mine, theirs)
	switch {
	case len(different) >= enoughContents && differ == 0:
		return Same
	case differ > 0 && !random:
		return Unknown
	case values && o.metasAgree(p):
		return Same
	case values, len(different) >= enoughContents:
		return Alike
	}
	return Unknown
}

// metasAgree reports whether the texts of enough samples agree, so many different
// ones that two other datasets would have them at the same places with a chance
// below one in a billion.
func (o *observed) metasAgree(p *observed) bool {
	count := map[digests.Sum]int{}
	n := 0
	for index, m := range o.metas {
		if other, ok := p.metas[index]; ok {
			if other != m {
				return false
			}
			count[m]++
			n++
		}
	}
	if n < enoughMetas {
		return false
	}
	agree := 0.0 // chance that two samples have the same texts
	for _, c := range count {
		agree += float64(c) * float64(c) / float64(n) / float64(n)
	}
	return float64(n)*math.Log10(agree) < -9
}

// attributesAgree reports whether all that hangs on two datasets is equal, and a
// container of enough items is among it.
func attributesAgree(a, b []traces.Attribute) bool {
	if len(a) != len(b) {
		return false
	}
	byPath := map[string]*traces.Attribute{}
	for i := range a {
		byPath[a[i].Path] = &a[i]
	}
	lists := 0
	for i := range b {
		x, y := byPath[b[i].Path], &b[i]
		if x == nil || x.Class != y.Class || x.Value != y.Value || x.Items != y.Items || !bytes.Equal(x.Ordered, y.Ordered) ||
			!bytes.Equal(x.Unordered, y.Unordered) {
			return false
		}
		if len(y.Ordered) > 0 && y.Items >= enoughContents {
			lists++
		}
	}
	return lists > 0
}

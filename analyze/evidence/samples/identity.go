package samples

import (
	"bytes"
	"cmp"
	"math"
	"slices"

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

// identify finds, for each loader on several ranks, which of the ranks' datasets
// are one: the first rank's is what those of the others are compared with.
func (j *Attribution) identify(t *timeline.Timeline) {
	used := map[*timeline.Loader][]datasetKey{}
	for i := range j.entries {
		k := j.dataset(&j.entries[i])
		l := j.Passes[j.entries[i].stream].Loader
		if list := used[l]; len(list) == 0 || list[len(list)-1] != k && !slices.Contains(list, k) {
			used[l] = append(list, k)
		}
	}
	seen := map[datasetKey]*observed{}
	taken := map[*timeline.Process]map[datasetKey]bool{}
	for _, ranks := range t.ByLoader() {
		var root []datasetKey
		for _, l := range ranks {
			mine := used[l]
			slices.SortFunc(mine, func(a, b datasetKey) int { return cmp.Compare(a.number, b.number) })
			if root == nil {
				root = mine
			}
			if len(mine) != len(root) || len(ranks) < 2 {
				continue
			}
			if taken[l.Process] == nil {
				taken[l.Process] = map[datasetKey]bool{}
			}
			for i, k := range mine {
				to := root[i]
				if s, ok := j.same[to]; ok {
					to = s.root
				}
				if _, done := j.same[k]; done || taken[l.Process][to] {
					continue // one index, one sample: two datasets of a process stay two
				}
				sure := Same
				if to != k {
					if !j.kin(to, k, ranks[0], l) {
						continue
					}
					sure = j.observe(seen, to).compare(j.observe(seen, k), j.ledger.values(to), j.ledger.values(k))
				}
				j.same[k] = sameness{to, sure}
				taken[l.Process][to] = true
			}
		}
	}
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
	if s, ok := j.sure[p]; ok {
		return s
	}
	sure, made := Same, p.DataLoader()
	for k, s := range j.same {
		if k.process == p.Loader.Process && (made.DatasetID == 0 || made.DatasetID == k.number) {
			sure = min(sure, s.sure)
		}
	}
	j.sure[p] = sure
	return sure
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

// observed is what was seen of a dataset's contents, by index.
type observed struct {
	contents map[int64][2]uint64
	metas    map[int64][2]uint64
	random   bool // an index had two contents, or its process's fetches draw random numbers
}

func (j *Attribution) observe(seen map[datasetKey]*observed, k datasetKey) *observed {
	if o := seen[k]; o != nil {
		return o
	}
	o := &observed{contents: map[int64][2]uint64{}, metas: map[int64][2]uint64{}}
	seen[k] = o
	for w, r := range j.reads {
		l := w.Pass.Loader
		if l.Process != k.process {
			continue
		}
		made := w.Pass.DataLoader()
		part := j.ledger.parts[l.Process.Part]
		if w.Process != nil && part.drew[w.Process.Proc] {
			o.random = true
		}
		for i := range r.digests {
			d := &r.digests[i]
			index := d.index
			if made.DatasetID == 0 {
				id, ok := part.within[object{l.Process.Proc, made.Loader}][index]
				if !ok || uint32(id>>indexBits) != k.number {
					continue
				}
				index = int64(id & indexMask)
			} else if made.DatasetID != k.number {
				continue
			}
			if index < 0 {
				continue
			}
			if d.kind&texts != 0 && d.meta != [2]uint64{} {
				o.metas[index] = d.meta
			}
			if d.kind&kindMask != whole || d.kind&(low|partly) != 0 {
				continue
			}
			if c, ok := o.contents[index]; ok && c != d.content {
				o.random = true
			}
			o.contents[index] = d.content
		}
	}
	return o
}

// How many samples must agree.
const (
	enoughContents = 8
	enoughMetas    = 32
)

// compare two datasets of one class and length.
func (o *observed) compare(p *observed, mine, theirs []traces.Attribute) Sameness {
	equal, differ := 0, 0
	different := map[[2]uint64]bool{}
	for index, c := range o.contents {
		switch d, ok := p.contents[index]; {
		case !ok:
		case c == d:
			equal++
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
	count := map[[2]uint64]int{}
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
		if x == nil || x.Class != y.Class || x.Value != y.Value || x.Items != y.Items || !bytes.Equal(x.Ordered, y.Ordered) || !bytes.Equal(x.Unordered, y.Unordered) {
			return false
		}
		if len(y.Ordered) > 0 && y.Items >= enoughContents {
			lists++
		}
	}
	return lists > 0
}

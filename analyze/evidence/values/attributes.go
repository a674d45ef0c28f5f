package values

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// attributes of one process.
type attributes struct {
	scalars []traces.Attribute // of persistent workers: at iter and at fetch
	ranks   []traces.Attribute
	full    bool
}

// mostScalars of a process are kept: 64 of them, changed in 250 passes.
const mostScalars = 16000

func (a *attributes) add(r *traces.Attribute) {
	switch {
	case r.When == "rank" && len(a.ranks) < mostScalars:
		a.ranks = append(a.ranks, *r)
	case r.When != "rank" && len(a.scalars) < mostScalars:
		a.scalars = append(a.scalars, *r)
	default:
		a.full = true
	}
}

// Scalar is one attribute of the dataset of a loader with persistent workers:
// its values in the training process and in the workers, as each pass began.
type Scalar struct {
	Path    string
	Read    string             // the code that fetches names it: yes, no, "" not known
	Parent  []traces.Attribute // rows of the training process, by pass
	Workers map[int][]Value    // by number
}

// Value is a row of a worker and the pass that it was written in.
type Value struct {
	traces.Attribute
	In *timeline.Pass
}

// Scalars of one DataLoader object, by path. full: there were too many rows.
func (c *Contents) Scalars(t *timeline.Timeline, l *timeline.Loader, object uint32) (list []*Scalar, full bool) {
	rows := c.parts[l.Process.Part]
	if rows == nil {
		return nil, false
	}
	found := map[string]*Scalar{}
	at := func(r *traces.Attribute) *Scalar {
		s := found[r.Path]
		if s == nil {
			s = &Scalar{Path: r.Path, Workers: map[int][]Value{}}
			found[r.Path] = s
		}
		if s.Read == "" || r.Read == "yes" {
			s.Read = r.Read
		}
		return s
	}
	if own := rows.attributes[l.Process.Proc]; own != nil {
		full = own.full
		for i := range own.scalars {
			if r := &own.scalars[i]; r.When == "iter" && r.Loader == object && !renewed(r) {
				s := at(r)
				s.Parent = append(s.Parent, *r)
			}
		}
	}
	for _, life := range l.Lives {
		if life.Object != object || life.Process == nil {
			continue
		}
		own := rows.attributes[life.Process.Proc]
		if own == nil {
			continue
		}
		full = full || own.full
		for i := range own.scalars {
			r := &own.scalars[i]
			w := t.Worker(l.Process.Part, r.Proc, r.Loader, r.Pass, r.Worker)
			if r.When != "fetch" || w == nil {
				continue
			}
			s := at(r)
			s.Workers[w.Number] = append(s.Workers[w.Number], Value{*r, w.Pass})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[path])
	}
	return list, full
}

// renewed: a row of the training process about something that is no scalar, and
// is not what it was as the pass before began.
func renewed(r *traces.Attribute) bool { return r.When == "iter" && r.Class != "" && r.Value == "" }

// Renewed are containers, arrays and objects that the training process put in
// the place of others, or wrote to, between two passes of a DataLoader object
// with persistent workers.
func (c *Contents) Renewed(l *timeline.Loader, object uint32) (list []traces.Attribute) {
	rows := c.parts[l.Process.Part]
	if rows == nil || rows.attributes[l.Process.Proc] == nil {
		return nil
	}
	for _, r := range rows.attributes[l.Process.Proc].scalars {
		if r.Loader == object && renewed(&r) {
			list = append(list, r)
		}
	}
	return list
}

// Containers are what hangs on the dataset of a loader in one rank, by path:
// the rows were written for the first loader that has this dataset. None, if it
// is put together of others.
func (c *Contents) Containers(l *timeline.Loader) (list []traces.Attribute) {
	rows := c.parts[l.Process.Part]
	if rows == nil || rows.attributes[l.Process.Proc] == nil || l.First().DatasetID == 0 {
		return nil
	}
	for _, r := range rows.attributes[l.Process.Proc].ranks {
		if r.Dataset == l.First().DatasetID && r.Items > 0 {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b traces.Attribute) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

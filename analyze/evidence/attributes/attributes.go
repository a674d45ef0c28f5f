// Package attributes is what the datasets, transforms and collate functions of
// loaders with persistent workers held as each pass began: in the training
// process, and in the workers, which inherited it.
package attributes

import (
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for rules about values that change between passes. Only changes are
// written: a row that is lost looks like a value that stayed.
var Source = &collect.Source[*Attributes]{
	Name:   "attributes",
	Tables: []string{"attribute"},
	Proof:  proof,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Attributes] { return &collected{map[processKey]*rows{}} },
}

var proof = []string{"batch_fetch", "attribute"}

// tables tell what persistent workers hold.
var tables = slices.Concat(timeline.Source.Proof, proof)

// Attributes is the evidence of Source.
type Attributes struct {
	timeline *timeline.Timeline
	of       map[objectKey]*Object
}

type objectKey struct {
	loader *timeline.Loader
	object uint32
}

// Object is what is known of one DataLoader object with persistent workers.
type Object struct {
	Places []*Place // by path
	// Renewed are containers and arrays that changed in the training process
	// between two passes where the workers were not looked at.
	Renewed []traces.Attribute
	// Missed is what the code that fetches may read and what was not compared, or
	// not all of it: Value says why, "" it is too large or cannot be looked into.
	Missed []traces.Attribute
	// Shared is what the code that fetches may read of what all processes see
	// change, and what did: Value is "changed", "" it cannot be told.
	Shared []traces.Attribute
	full   bool // there were more rows than are kept
}

// Place is one attribute: its values in the training process and in the workers,
// as each pass began.
type Place struct {
	Path    string
	Read    string             // the code that fetches reads it of this object: yes, no, "" not known
	Parent  []traces.Attribute // rows of the training process, by pass
	Workers map[int][]Value    // by number
}

// Value is a row of a worker and the pass that it was written in.
type Value struct {
	traces.Attribute
	In *timeline.Pass
}

// collected is the rows of each process.
type collected struct{ of map[processKey]*rows }

type processKey struct {
	part *traces.Part
	proc uint32
}

type rows struct {
	list []traces.Attribute
	full bool
}

// most rows of a process are kept: 128 attributes, changed in 125 passes.
const most = 16000

// Add takes the rows of one batch.
func (c *collected) Add(b traces.Batch) {
	list, _ := b.Rows.([]traces.Attribute)
	for i := range list {
		if w := list[i].When; w == "rank" || w == "begin" { // compared between ranks, and between loaders: see values, samples
			continue
		}
		k := processKey{b.Part, list[i].Proc}
		if c.of[k] == nil {
			c.of[k] = &rows{}
		}
		if r := c.of[k]; len(r.list) < most {
			r.list = append(r.list, list[i])
		} else {
			r.full = true
		}
	}
}

// Merge takes over the processes of other parts.
func (c *collected) Merge(other collect.Collector[*Attributes]) {
	maps.Copy(c.of, other.(*collected).of)
}

// Build joins the values of training processes and their workers.
func (c *collected) Build(e *collect.Evidence) *Attributes {
	a := &Attributes{collect.Of(e, timeline.Source), map[objectKey]*Object{}}
	for _, l := range a.timeline.Loaders {
		for i := range l.Objects {
			if o := &l.Objects[i]; Persistent(o) {
				a.of[objectKey{l, o.Loader}] = c.object(a.timeline, l, o.Loader)
			}
		}
	}
	return a
}

// Persistent reports whether a DataLoader object has workers that live as long
// as it.
func Persistent(o *traces.Loader) bool { return o.Persistent && o.NumWorkers > 0 }

func (c *collected) object(t *timeline.Timeline, l *timeline.Loader, number uint32) *Object {
	o := &Object{}
	found := map[string]*Place{}
	if own := c.of[processKey{l.Process.Part, l.Process.Proc}]; own != nil {
		o.full = own.full
		for i := range own.list {
			if r := &own.list[i]; r.Loader == number {
				o.add(r, found)
			}
		}
	}
	for _, worker := range l.WorkerProcesses {
		if worker.Object != number || worker.Process == nil {
			continue
		}
		if own := c.of[processKey{worker.Process.Part, worker.Process.Proc}]; own != nil {
			o.full = o.full || own.full
			inWorker(t, l, own.list, found)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		o.Places = append(o.Places, found[path])
	}
	return o
}

// add a row of the training process.
func (o *Object) add(r *traces.Attribute, found map[string]*Place) {
	switch r.When {
	case "missed":
		o.Missed = append(o.Missed, *r)
	case "shared":
		o.Shared = append(o.Shared, *r)
	case "iter":
		if r.Class != "" && r.Value == "" && len(r.Ordered) == 0 {
			o.Renewed = append(o.Renewed, *r)
			return
		}
		p := place(found, r)
		p.Parent = append(p.Parent, *r)
	}
}

// inWorker adds the values of one worker, as it began to fetch in each pass.
func inWorker(t *timeline.Timeline, l *timeline.Loader, list []traces.Attribute, found map[string]*Place) {
	for i := range list {
		r := &list[i]
		if w := t.Worker(l.Process.Part, r.Proc, r.Loader, r.Pass, r.Worker); w != nil && r.When == "fetch" {
			p := place(found, r)
			p.Workers[w.Number] = append(p.Workers[w.Number], Value{*r, w.Pass})
		}
	}
}

// place is the attribute of a row.
func place(found map[string]*Place, r *traces.Attribute) *Place {
	p := found[r.Path]
	if p == nil {
		p = &Place{Path: r.Path, Workers: map[int][]Value{}}
		found[r.Path] = p
	}
	if p.Read == "" || r.Read == "yes" {
		p.Read = r.Read
	}
	return p
}

// Of is what is known of a DataLoader object of a loader. There is nothing where
// rows are missing, or its workers are not persistent.
func (a *Attributes) Of(l *timeline.Loader, object uint32) *Object {
	if o := a.of[objectKey{l, object}]; o != nil && !o.full && a.timeline.Gap(l, tables) == "" {
		return o
	}
	return &Object{}
}

// Gap says what is not known of the persistent workers of a loader.
func (a *Attributes) Gap(ranks timeline.Ranks) string {
	return ranks.Distinct(func(l *timeline.Loader) string {
		for i := range l.Objects {
			o := &l.Objects[i]
			switch {
			case !Persistent(o) || a.timeline.Losses(l, tables) != "": // the losses are told anyway
			case o.Batched == "": // an older hook
				return "the values of attributes are not in the trace"
			case a.timeline.Gap(l, tables) != "":
				return a.timeline.Gap(l, tables)
			case a.of[objectKey{l, o.Loader}].full:
				return "more values changed than are kept"
			}
		}
		return ""
	})
}

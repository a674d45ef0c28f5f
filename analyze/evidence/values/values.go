// Package values is what samples contain and what their datasets hold: digests
// of samples by their index, lengths and containers of datasets.
package values

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/evidence/bounded"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for the rules that compare contents.
var Source = &collect.Source[*Contents]{
	Name:   "values",
	Tables: []string{"dataset", "attribute", "digest"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Contents] { return newCollector() },
}

// Contents is the evidence of Source.
type Contents struct {
	datasets   map[dataset]traces.Dataset
	containers map[process][]traces.Attribute
	samples    map[*timeline.Pass][]Sample
}

type process struct {
	part *traces.Part
	proc uint32
}

// dataset of a process, by its number.
type dataset struct {
	process
	number uint32
}

// collector is that of Source.
type collector struct {
	Contents
	streams map[stream]*stream
	digests bounded.Rows[digest]
}

func newCollector() *collector {
	return &collector{Contents{map[dataset]traces.Dataset{}, map[process][]traces.Attribute{}, nil}, map[stream]*stream{},
		bounded.New(mostDigests, (*digest).number)}
}

// Add takes the rows of one batch.
func (c *collector) Add(b traces.Batch) {
	switch rows := b.Rows.(type) {
	case []traces.Dataset:
		for i := range rows {
			c.datasets[dataset{process{b.Part, rows[i].Proc}, rows[i].Dataset}] = rows[i]
		}
	case []traces.Attribute:
		for i := range rows {
			c.hold(process{b.Part, rows[i].Proc}, &rows[i])
		}
	case []traces.Digest:
		for i := range rows {
			c.digest(process{b.Part, rows[i].Proc}, &rows[i])
		}
	}
}

// Merge takes over what was collected from other parts.
func (c *collector) Merge(other collect.Collector[*Contents]) {
	o := other.(*collector)
	maps.Copy(c.datasets, o.datasets)
	maps.Copy(c.containers, o.containers)
	c.digests.Merge(&o.digests)
}

// Build sorts the samples by pass.
func (c *collector) Build(e *collect.Evidence) *Contents {
	c.samples = byPass(collect.Of(e, timeline.Source), c.digests.Release())
	return &c.Contents
}

// Recorded reports whether the hook that wrote a loader knew of contents: older
// ones wrote none, and that says nothing.
func Recorded(l *traces.Loader) bool { return l.Batched != "" }

// Dataset is that of a loader; ok is false if it is put together of others, or
// was not recorded.
func (c *Contents) Dataset(p *timeline.Process, l *traces.Loader) (row traces.Dataset, ok bool) {
	row, ok = c.datasets[dataset{process{p.Part, p.Proc}, l.DatasetID}]
	return row, ok
}

package batches

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Epochs is the calls of set_epoch. They are shown, and nothing rests on them.
var Epochs = &collect.Source[Samplers]{
	Name:   "set_epoch",
	Tables: []string{"set_epoch"},
	New:    func() collect.Collector[Samplers] { return Samplers{} },
}

// Samplers is the calls of set_epoch of each sampler.
type Samplers map[sampler]*Told

type sampler struct {
	process
	id uint32
}

// Told is how often a sampler was told an epoch.
type Told struct {
	Calls int
	Last  traces.SetEpoch
}

func (s Samplers) Add(b traces.Batch) {
	rows, _ := b.Rows.([]traces.SetEpoch)
	for i := range rows {
		told := at(s, sampler{process{b.Part, rows[i].Proc}, rows[i].SamplerID})
		told.Calls++
		told.Last = rows[i]
	}
}

func (s Samplers) Merge(o collect.Collector[Samplers]) { maps.Copy(s, o.(Samplers)) }

func (s Samplers) Build(*collect.Evidence) Samplers { return s }

// Of the sampler of a pass, at all times.
func (s Samplers) Of(p *timeline.Pass) *Told {
	l := p.Loader.Process
	return get(s, sampler{process{l.Part, l.Proc}, p.DataLoader().SamplerID})
}

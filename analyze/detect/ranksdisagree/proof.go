package ranksdisagree

import (
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/traces"
)

// proof is what has to be there of the evidence of others for ranks to be clean:
// all lists that hang on their datasets, the groups that they are in, and what
// their workers were given.
var proof = &collect.Source[struct{}]{
	Name:   "proof of ranks-disagree",
	Proof:  []string{"dist", "dataset", "attribute", "batch_put", "digest"},
	Inside: true,
	New:    func() collect.Collector[struct{}] { return rows{} },
}

// rows are none: others read them.
type rows struct{}

func (rows) Add(traces.Batch)                     {}
func (rows) Merge(collect.Collector[struct{}])    {}
func (rows) Build(*collect.Evidence) (_ struct{}) { return }

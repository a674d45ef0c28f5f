package detect

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// Join is for rules that look at several kinds of facts. Each kind is collected
// once, however many rules name it, alone or joined.
func Join(of ...*Facts) *Facts {
	joined := &Facts{Of: of}
	var names []string
	for _, f := range of {
		names = append(names, f.Name)
		for _, need := range f.Needs {
			if !slices.Contains(joined.Needs, need) {
				joined.Needs = append(joined.Needs, need)
			}
		}
	}
	joined.Name = strings.Join(names, " and ")
	joined.New = func() Accumulator {
		all := make(Joined, len(of))
		for i, f := range of {
			all[i] = f.New()
		}
		return all
	}
	return joined
}

// Joined is the accumulators of joined Facts, in the order of Facts.Of.
type Joined []Accumulator

// Add takes the rows of one batch.
func (j Joined) Add(b traces.Batch) {
	for _, a := range j {
		a.Add(b)
	}
}

// Merge takes over what was collected from other parts.
func (j Joined) Merge(other Accumulator) {
	for i, a := range other.(Joined) {
		j[i].Merge(a)
	}
}

package wronglen

import (
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// longest is the largest number that we reckon with: those of a trace may be any.
const longest = 1 << 48

// boundsOf the length of a dataset, by what a pass asked for: most -1 is not
// known.
func boundsOf(p *timeline.Pass, asked *batches.Requests) (least, most int64) {
	o := p.DataLoader()
	if !asked.Indexed() || p.Blind || !samplers.PlainBatches(o) || !samplers.AsksForAll(o) {
		return 0, -1
	}
	least = min(asked.Max, longest) + 1
	n, total, replicas := int64(asked.Samples), min(o.SamplerTotal, longest), min(o.SamplerReplicas, longest)
	batch := int64(o.BatchSize)
	switch {
	case replicas > 0 && total > 0: // it repeats or leaves out fewer than there are ranks
		return max(least, total-replicas+1), total + replicas - 1
	case replicas > 0 || !p.Exhausted || o.Replacement == "yes":
	case !o.DropLast && n == least:
		return n, n
	case o.DropLast && batch > 0 && least < n+batch:
		return max(least, n), n + batch - 1
	}
	return least, -1
}

package values

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// mostContainers of a process are kept.
const mostContainers = 16000

// hold keeps a row about something that hangs on a dataset. What persistent
// workers hold is the evidence of attributes.
func (c *collector) hold(p process, r *traces.Attribute) {
	if r.When == "rank" && len(c.containers[p]) < mostContainers {
		c.containers[p] = append(c.containers[p], *r)
	}
}

// Containers are what hangs on the dataset of a loader in one rank, by path:
// the rows were written for the first loader that has this dataset. None, if it
// is put together of others.
func (c *Contents) Containers(l *timeline.Loader) (list []traces.Attribute) {
	if l.First().DatasetID == 0 {
		return nil
	}
	for _, r := range c.containers[process{l.Process.Part, l.Process.Proc}] {
		if r.Dataset == l.First().DatasetID && r.Items > 0 {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b traces.Attribute) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

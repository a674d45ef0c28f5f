// Package samplernosetepoch is the rule sampler-no-set-epoch: a sampler that shuffles by
// its epoch is never told a new one. docs/rules/sampler-no-set-epoch.md
// explains it.
package samplernosetepoch

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "sampler-no-set-epoch",
	DP:      "DP14",
	Title:   "A sampler is never told the epoch and replays one order",
	Sources: []collect.Any{orders.Source, batches.Epochs, values.Source},
	Excuses: excuses,
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	list := detect.Of(c, orders.Source).Of(c.Loaders)
	if r := find(c, list); len(r.repeats) > 0 {
		reason := fmt.Sprintf("%d of %d passes in the order of an earlier one, at epoch %d",
			len(r.repeats), len(r.training), r.training[0].Epoch)
		return detect.Found(reason, r.finding(c))
	}
	if unfit := orders.Unfit(list); unfit != "" {
		return detect.NotApplicable(unfit)
	}
	if !slices.ContainsFunc(list, func(o *orders.Loader) bool { return o.First().SamplerEpoch >= 0 }) {
		return detect.NotApplicable("its sampler has no epoch")
	}
	reason, n := orders.Nothing(list)
	switch {
	case reason != "":
		return detect.CannotTell(reason)
	case slices.ContainsFunc(list, climbs):
		return detect.Clean(fmt.Sprintf("%d passes, in an order that is not shuffled", n))
	}
	return detect.Clean(fmt.Sprintf("%d passes: a new epoch or a new order in each", n))
}

// climbs reports whether the epoch stays as it is, and the order is none that
// depends on it.
func climbs(o *orders.Loader) bool {
	return slices.ContainsFunc(o.Trainings, func(training []*orders.Pass) bool { return o.Frozen(training) && !training[0].Shuffled() })
}

// replay is the training that is shown: the longest of those that leave the fewest
// excuses open.
type replay struct {
	c        *detect.Case
	rated    int
	training []*orders.Pass
	repeats  []orders.Repeat // the surest one first
	ranks    []int           // of all such trainings
}

// find the trainings that replay one order at one epoch.
func find(c *detect.Case, list []*orders.Loader) *replay {
	r := &replay{c: c}
	for _, o := range list {
		if o.Iterable() {
			continue
		}
		for _, training := range o.Trainings {
			repeats := orders.Shuffled(orders.Repeats(training))
			if len(repeats) == 0 || !o.Frozen(training) {
				continue
			}
			slices.SortStableFunc(repeats, func(a, b orders.Repeat) int { return r.rate(b) - r.rate(a) })
			r.ranks = append(r.ranks, o.Rank())
			if n := r.rate(repeats[0]); n > r.rated || n == r.rated && len(repeats) > len(r.repeats) {
				r.rated, r.training, r.repeats = n, training, repeats
			}
		}
	}
	return r
}

func (r *replay) finding(c *detect.Case) finding.Finding {
	first := r.repeats[0].First
	o := first.Object
	class, sampler := samplers.Class(o), samplers.Path(o)
	f := finding.Finding{Certainty: finding.Proven}
	f.Title = fmt.Sprintf("%s: the epoch of %s stays %d%s",
		orders.Passes(r.repeats, r.training), class, first.Epoch, orders.OnRanks(c.Loaders, r.ranks))
	f.Evidence = []finding.Evidence{{Refs: orders.Begins(r.training), Text: fmt.Sprintf(
		"%s shuffles by its seed and its epoch. As each of %d passes began, %s.epoch was %d.", class, len(r.training), sampler, first.Epoch)}}
	if o.SamplerID != 0 {
		f.Evidence = append(f.Evidence, told(first.Loader.Process, detect.Of(c, batches.Epochs).Of(first.Pass)))
	}
	f.Evidence = append(f.Evidence, orders.Evidence(r.repeats)...)
	f.Cost = orders.Cost(r.training, r.repeats)
	f.Fix = fmt.Sprintf(`# %s: tell the sampler the epoch, on every rank, before each pass
for epoch in range(first_epoch, epochs):
    %s.set_epoch(epoch)
    for batch in loader:
        ...`, first.Loader.At(), sampler)
	f.Facts = r
	return f
}

// told says how often set_epoch was called.
func told(p *timeline.Process, t *batches.Told) finding.Evidence {
	if t.Calls == 0 {
		return finding.Evidence{Text: "set_epoch was never called."}
	}
	times := "once"
	if t.Calls > 1 {
		times = fmt.Sprintf("%d times", t.Calls)
	}
	return finding.Evidence{
		Refs: []finding.Ref{{Part: p.Part.Name, Table: "set_epoch", Seq: t.Last.Seq}},
		Text: fmt.Sprintf("set_epoch was called %s, the last time by %s with epoch %d.",
			times, timeline.Place(p.Cwd, t.Last.File, t.Last.Line), t.Last.Epoch),
	}
}

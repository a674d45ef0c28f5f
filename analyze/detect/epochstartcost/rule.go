// Package epochstartcost is the rule epoch-start-cost: each pass begins with a
// pause in which workers are started. docs/rules/epoch-start-cost.md explains it.
package epochstartcost

import (
	"fmt"
	"slices"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "epoch-start-cost",
	Title:   "Each epoch begins with a pause",
	Sources: []collect.Any{looptime.Source},
	Excuses: []detect.Excuse{{
		Text: "other programs on the machine took the processors, and the workers' starts waited for them.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			w := f.Facts.(*starts).worst
			disturbance, known := w.rank.Disturbance(w.rank.Starters)
			return known && w.counts(1-disturbance)
		},
	}},
	Judge: judge,
}

// From when on the starts are worth a word. Those of the first pass are not
// counted: its imports and caches are needed once in any case.
const (
	several = 2 // passes after the first
	least   = 3 * time.Second
	each    = 500 * time.Millisecond
	matters = 0.10 // of the time of the passes
)

// starts is what the rule knows.
type starts struct {
	*detect.Case
	worst *paused
}

// paused is the starts of one rank.
type paused struct {
	rank  *looptime.Rank
	each  []time.Duration // that new workers cost, of each pass but the first
	sum   time.Duration
	total time.Duration // of these passes, their starts among it
	first []looptime.Start
}

func judge(c *detect.Case) detect.Verdict {
	l := detect.Of(c, looptime.Source).Of(c.Loaders)
	if l == nil {
		return detect.CannotTell("nothing was delivered")
	}
	s := &starts{Case: c}
	for _, r := range l.Ranks {
		if p := pausesOf(r); s.worst == nil || p.sum > s.worst.sum {
			s.worst = p
		}
	}
	w := s.worst
	switch {
	case c.First().First().NumWorkers <= 0:
		return detect.NotApplicable("no workers: nothing is started")
	case len(w.each) < several:
		return detect.CannotTell("fewer than three passes: what the first one costs is needed in any case")
	case w.counts(1):
		return detect.Found(w.amount(), s.finding())
	}
	return detect.Clean(w.amount())
}

// pausesOf a rank: the time until workers that were started for a pass began to
// fetch, and by how much their first fetch took longer than the others.
func pausesOf(r *looptime.Rank) *paused {
	p := &paused{rank: r}
	var work time.Duration
	n := 0
	for _, w := range r.Workers {
		work += w.Fetch + w.Collate
		n += w.Batches
	}
	mean := work / time.Duration(max(n, 1))
	for i, x := range r.Passes {
		if i == 0 || x.Start.All <= 0 {
			continue
		}
		p.total += x.Start.All + x.Total
		cost := time.Duration(0)
		if x.Start.Made > 0 {
			cost = min(x.Start.Workers+max(x.Start.Fetch-mean, 0), x.Start.All)
		}
		p.each, p.sum, p.first = append(p.each, cost), p.sum+cost, append(p.first, x.Start)
	}
	return p
}

// counts reports whether a share of the pauses is worth a word.
func (p *paused) counts(share float64) bool {
	part := func(d time.Duration) time.Duration { return time.Duration(share * float64(d)) }
	return part(p.sum) >= least && part(p.typical()) >= each && part(p.sum).Seconds() >= matters*p.total.Seconds()
}

// typical is the middle one of the pauses.
func (p *paused) typical() time.Duration {
	all := slices.Sorted(slices.Values(p.each))
	return all[len(all)/2]
}

func (p *paused) amount() string {
	return fmt.Sprintf("starting workers took %s of %s, in %s after the first", words.Seconds(p.sum.Seconds()),
		words.Seconds(p.total.Seconds()), words.Count(len(p.each), "pass"))
}

func (s *starts) finding() finding.Finding {
	w := s.worst
	method := s.First().First().StartMethod
	share := w.sum.Seconds() / w.total.Seconds()
	var workers, fetch time.Duration
	for _, f := range w.first {
		workers += f.Workers
		fetch += f.Fetch
	}
	n := time.Duration(len(w.first))
	list := []finding.Evidence{{
		Text: fmt.Sprintf("In each of %s after the first new workers are started (%s): on average %s "+
			"from iter() until the first of them fetches, and %s for its first batch.",
			words.Count(len(w.each), "pass"), method, words.Seconds((workers / n).Seconds()), words.Seconds((fetch / n).Seconds())),
		Refs: w.rank.Refs,
	}, {
		Text: fmt.Sprintf("These passes took %s in all; %s of that is the start of workers.", words.Seconds(w.total.Seconds()),
			words.Percent(share)),
	}}
	return finding.Finding{
		Certainty: finding.Proven,
		Title:     fmt.Sprintf("Each epoch begins with a pause of %s, in which workers are started", words.Seconds(w.typical().Seconds())),
		Evidence:  list,
		Cost: fmt.Sprintf("%s in %s, %s of their time", words.Seconds(w.sum.Seconds()), words.Count(len(w.each), "pass"),
			words.Percent(share)),
		Fix: fmt.Sprintf("# %s: start the workers once, if nothing about the dataset is changed between the passes (they would not see it)\n"+
			"DataLoader(..., persistent_workers=True)\n\n"+
			"# else make their start cheap: no heavy imports and no opening of large files in worker_init_fn, in the dataset's __setstate__,\n"+
			"# or in the first __getitem__", s.First().At()),
		Facts: s,
	}
}

// Package sharedworkers is the rule shard-duplicate-workers: the workers of an
// IterableDataset read the same samples. docs/rules/shard-duplicate-workers.md
// explains it.
package sharedworkers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	DP:      dp,
	Title:   "Several workers deliver the same samples",
	Sources: []collect.Any{samples.Source},
	Judge:   detect.Adapt(judge),
}

const (
	id = "shard-duplicate-workers"
	dp = "DP2"
)

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	ledger := collect.Of(e, samples.Source)
	for _, ranks := range t.ByLoader() {
		v := &verdict{Timeline: t, ledger: ledger, ranks: ranks}
		v.look()
		if v.worst != nil {
			findings = append(findings, v.finding())
		}
		checks = append(checks, v.check())
	}
	return findings, checks
}

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	ledger *samples.Attribution
	ranks  timeline.Ranks

	found    []*shared
	worst    *shared
	compared int // passes of which at least two workers were
	workers  int // most of them
	repeats  bool
	unseen   bool // workers of which too little was looked at
	alone    bool // one worker, or none, delivers
	random   bool // contents of samples may be drawn anew for each
	drawn    bool // workers may have begun with the same files by chance
	blind    bool // too few were looked at to tell whether two workers read the same, each in its order
	scatter  scatter
}

// scatter is what pairs of workers have in common that read as many samples each.
type scatter struct {
	samples.Scatter
	of   int            // samples that were looked at
	pass *timeline.Pass // the first such
	pair *samples.Twins // in it
}

// shared is a pass whose workers read the same.
type shared struct {
	pass      *timeline.Pass
	pairs     []*samples.Twins
	certainty finding.Certainty
}

// enough samples must have been looked at in each of two workers.
const enough = 8

func (v *verdict) look() {
	for _, l := range v.ranks {
		if !l.Iterable() || v.ledger.Resamples(l) != "" {
			continue
		}
		v.random = v.random || !v.ledger.Fixed(l)
		for _, p := range l.Passes {
			if s := v.pass(p); s != nil {
				v.found = append(v.found, s)
			}
		}
	}
	if len(v.found) == 0 && v.scatter.Same() {
		v.found = []*shared{{pass: v.scatter.pass, pairs: []*samples.Twins{v.scatter.pair}, certainty: finding.Likely}}
	}
	slices.SortStableFunc(v.found, func(a, b *shared) int { return cmp.Compare(b.certainty, a.certainty) })
	if len(v.found) > 0 {
		v.worst = v.found[0]
	}
}

// pass compares the workers of one pass.
func (v *verdict) pass(p *timeline.Pass) *shared {
	var reads []*samples.Read
	filled := 0
	for _, w := range p.Workers {
		r := v.ledger.Read(w)
		if r == nil || r.Samples == 0 && r.Looked() == 0 {
			continue
		}
		filled++
		if r.Looked() >= enough {
			reads = append(reads, r)
		} else {
			v.unseen = true
		}
	}
	if filled < 2 {
		v.alone = v.alone || p.Delivered > 0
		return nil
	}
	s := &shared{pass: p}
	for i, a := range reads {
		if a.Repeats() {
			v.repeats = true
		}
		for _, b := range reads[i+1:] {
			t := samples.Compare(a, b)
			if t == nil || t.Partly {
				v.scattered(a, b)
			}
			if t == nil {
				continue
			}
			if t.DrawsShards() && certainty(t) < finding.Proven {
				v.drawn = true
				continue
			}
			s.pairs = append(s.pairs, t)
			s.certainty = max(s.certainty, certainty(t))
		}
	}
	if len(reads) > 1 && !v.repeats {
		v.compared++
		v.workers = max(v.workers, len(reads))
	}
	if s.certainty == 0 {
		return nil
	}
	s.pairs = slices.DeleteFunc(s.pairs, func(t *samples.Twins) bool { return certainty(t) < s.certainty })
	return s
}

// scattered adds what two workers have in common, in orders of their own.
func (v *verdict) scattered(a, b *samples.Read) {
	found := samples.Scattered(a, b)
	v.blind = v.blind || !found.Tells()
	if !samples.Even(a, b) || a.Repeats() || b.Repeats() {
		return
	}
	s := &v.scatter
	s.Shared, s.Own, s.Expected = s.Shared+found.Shared, s.Own+found.Own, s.Expected+found.Expected
	s.of += a.Looked() + b.Looked()
	if s.pass == nil && found.Shared > 0 {
		s.pass = a.Worker.Pass
		s.pair = found.Twins(a, b)
	}
}

// certainty of twins. A file that is listed several times, to weigh it more,
// gives a stretch as well.
func certainty(t *samples.Twins) finding.Certainty {
	switch {
	case t.Sure() == samples.Certain:
		return finding.Proven
	case t.Partly:
		return finding.Note
	}
	return finding.Likely
}

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.ranks.ID(), Status: finding.CannotTell}
	gap := v.ranks.Distinct(func(l *timeline.Loader) string { return v.Gap(l, samples.Tables) })
	lost := v.ranks.Distinct(func(l *timeline.Loader) string { return v.Losses(l, samples.Tables) })
	iterable := slices.ContainsFunc(v.ranks, (*timeline.Loader).Iterable)
	switch {
	case v.worst != nil && v.worst.certainty > finding.Note:
		c.Status, c.Reason = finding.Found, fmt.Sprintf("the workers of %s read the same samples", words.Count(len(v.found), "pass"))
	case lost != "":
		c.Reason = lost
	case !iterable:
		c.Status, c.Reason = finding.Clean, "not an IterableDataset: the sampler deals out the samples"
	case gap != "":
		c.Reason = gap
	case v.ledger.Resamples(v.ranks[0]) != "":
		c.Reason = v.ledger.Resamples(v.ranks[0]) + " draws its shards at random, by its name"
	case v.repeats:
		c.Reason = "workers read samples more than once themselves"
	case v.drawn:
		c.Reason = "workers began with the same samples, which they do by chance where they draw their shards at random"
	case v.worst != nil:
		c.Reason = "workers read some of the same samples: files that are given to several, or are listed several times"
	case v.compared > 0 && v.random:
		c.Reason = v.ledger.WhyNotFixed(v.ranks[0])
	case v.compared > 0 && v.blind:
		c.Reason = "too few samples were looked at to exclude that workers read the same ones, each in an order of its own: dptrace record --digest full looks at all"
	case v.compared > 0 && !v.unseen:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%s in %s: other samples in each, of those that were looked at", words.Count(v.workers, "worker"), words.Count(v.compared, "pass"))
		if told := v.ledger.ContentsSamplingNote(); told != "" {
			c.Reason += "; " + told
		}
	case v.alone && !v.unseen && v.compared == 0:
		c.Status, c.Reason = finding.Clean, "no two workers that deliver samples"
	default:
		c.Reason = fmt.Sprintf("fewer than %d samples of a worker could be compared", enough)
	}
	return c
}

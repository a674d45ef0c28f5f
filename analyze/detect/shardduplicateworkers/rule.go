// Package shardduplicateworkers is the rule shard-duplicate-workers: the workers of an
// IterableDataset read the same samples. docs/rules/shard-duplicate-workers.md
// explains it.
package shardduplicateworkers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "shard-duplicate-workers",
	DP:      "DP2",
	Title:   "Several workers deliver the same samples",
	Sources: []collect.Any{samples.Source},
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	v := &verdict{ledger: detect.Of(c, samples.Source), ranks: c.Loaders}
	v.look()
	return v.verdict()
}

// verdict on one loader.
type verdict struct {
	ledger *samples.Attribution
	ranks  timeline.Ranks

	found    []*shared // the surest first
	compared int       // passes of which at least two workers were
	workers  int       // most of them that were compared
	repeats  bool
	unseen   bool // workers of which too little was looked at
	many     bool // workers of one pass, more than are compared
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

const (
	// enough samples must have been looked at in each of two workers.
	enough = 8
	// mostWorkers of a pass are compared with each other.
	mostWorkers = 256
)

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
}

// pass compares the workers of one pass.
func (v *verdict) pass(p *timeline.Pass) *shared {
	reads, filled := v.reads(p)
	if filled < 2 {
		v.alone = v.alone || p.Delivered > 0
		return nil
	}
	s := &shared{pass: p}
	for i, a := range reads {
		v.repeats = v.repeats || a.Repeats()
		for _, b := range reads[i+1:] {
			if t := v.compare(a, b); t != nil {
				s.pairs = append(s.pairs, t)
				s.certainty = max(s.certainty, certainty(t))
			}
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

// reads of a pass that can be compared; filled is how many workers read anything.
func (v *verdict) reads(p *timeline.Pass) (reads []*samples.Read, filled int) {
	for _, w := range p.Workers {
		r := v.ledger.Read(w)
		if r == nil || r.Samples == 0 && r.Looked() == 0 {
			continue
		}
		filled++
		switch {
		case r.Looked() < enough:
			v.unseen = true
		case len(reads) == mostWorkers:
			v.many, v.unseen = true, true
		default:
			reads = append(reads, r)
		}
	}
	return reads, filled
}

// compare two workers; nil: what they have in common is not enough, or may be
// chance.
func (v *verdict) compare(a, b *samples.Read) *samples.Twins {
	t := samples.Compare(a, b)
	if t == nil || t.Partly {
		v.scattered(a, b)
	}
	if t != nil && t.DrawsShards() && certainty(t) < finding.Proven {
		v.drawn = true
		return nil
	}
	return t
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

func (v *verdict) verdict() detect.Verdict {
	if len(v.found) > 0 {
		f := v.finding(v.found[0])
		if f.Certainty > finding.Note {
			return detect.Found(fmt.Sprintf("the workers of %s read the same samples", words.Count(len(v.found), "pass")), f)
		}
		return v.nothing().Noting(f)
	}
	return v.nothing()
}

// nothing more than a note was found.
func (v *verdict) nothing() detect.Verdict {
	resamples := v.ranks.Distinct(func(l *timeline.Loader) string { return words.Last(v.ledger.Resamples(l)) })
	switch {
	case !slices.ContainsFunc(v.ranks, (*timeline.Loader).Iterable):
		return detect.NotApplicable("not an IterableDataset: the sampler deals out the samples")
	case !v.parallel():
		return detect.NotApplicable("no two workers")
	case resamples != "":
		return detect.CannotTell(resamples + " draws its shards at random, by its name")
	case v.repeats:
		return detect.CannotTell("workers read samples more than once themselves")
	case v.drawn:
		return detect.CannotTell("workers began with the same samples, which they do by chance where they draw their shards at random")
	case len(v.found) > 0:
		return detect.CannotTell("workers read some of the same samples: files that are given to several, or are listed several times")
	case v.compared > 0 && v.random:
		return detect.CannotTell(v.unfixed())
	case v.compared > 0 && v.blind:
		return detect.CannotTell("too few samples were looked at to exclude that workers read the same ones, each in an order of its own: " +
			"dptrace record --digest full looks at all")
	case v.compared > 0 && !v.unseen:
		return v.clean()
	case v.many:
		return detect.CannotTell(fmt.Sprintf("of more than %d workers of a pass no more are compared", mostWorkers))
	case v.alone && !v.unseen && v.compared == 0:
		return detect.Clean("no two workers that deliver samples")
	}
	return detect.CannotTell(fmt.Sprintf("fewer than %d samples of a worker could be compared", enough))
}

// parallel reports whether a pass has several workers.
func (v *verdict) parallel() bool {
	return slices.ContainsFunc(v.ranks, func(l *timeline.Loader) bool {
		return slices.ContainsFunc(l.Passes, func(p *timeline.Pass) bool { return len(p.Workers) > 1 })
	})
}

func (v *verdict) clean() detect.Verdict {
	reason := fmt.Sprintf("%s in %s: other samples in each, of those that were looked at", words.Count(v.workers, "worker"),
		words.Count(v.compared, "pass"))
	if left := v.left(); left != "" {
		reason += "; " + left
	}
	return detect.Clean(reason)
}

// unfixed says why contents that differ may be one sample's.
func (v *verdict) unfixed() string {
	if l := v.ranks[0]; samples.HandsOutBatches(l) && !v.ledger.Drew(l) {
		return words.BatchesDiffer
	}
	return words.ContentsDiffer
}

// left says what contents were left out.
func (v *verdict) left() string {
	_, contents := v.ledger.Halved()
	return words.OneIn(contents, "positions")
}

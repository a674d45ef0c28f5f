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
	Excuses: excuses,
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

	found     []*shared // the surest first
	compared  int       // passes of which at least two workers were
	workers   int       // most of them that were compared
	repeats   bool
	unseen    bool   // workers of which too little was looked at
	many      bool   // workers of one pass, more than are compared
	alone     bool   // one worker, or none, delivers
	fixed     bool   // contents that differ are other samples
	drawn     bool   // workers may have begun with the same files by chance
	overruled bool   // samples are equal, and their rows of the batches are not
	numbered  string // the part of samples that is equal, and may be a number
	looked    int    // samples of the passes that were compared: looked at
	of        int    // and all
	equal     int    // samples that several workers delivered, too few to say more
	scatter   scatter
	lines     seams
}

// scatter is what pairs of workers have in common that read as many samples each.
type scatter struct {
	samples.Scatter
	of   int            // samples that were looked at
	pass *timeline.Pass // the first such
	pair *samples.Twins // in it
}

// seams is of passes that were looked at as a whole: whether the share of each worker
// ends with what the next one's begins with.
type seams struct {
	passes int
	with   int // of them
	census *samples.Census
	pass   *timeline.Pass
	reads  []*samples.Read
}

// shared is a pass whose workers read the same.
type shared struct {
	pass      *timeline.Pass
	pairs     []*samples.Twins
	census    *samples.Census // nil: not all was looked at
	seams     bool            // it is the ends of shares that are the same
	certainty finding.Certainty
}

const (
	// enough samples must have been looked at in each of two workers.
	enough = 8
	// mostWorkers of a pass are compared with each other.
	mostWorkers = 256
)

func (v *verdict) look() {
	v.fixed = true
	for _, l := range v.ranks {
		if !l.Iterable() || v.ledger.Resamples(l) != "" {
			continue
		}
		v.fixed = v.fixed && v.ledger.Recurs(l)
		for _, p := range l.Passes {
			if s := v.pass(p); s != nil {
				v.found = append(v.found, s)
			}
		}
	}
	if len(v.found) == 0 && v.scatter.Same() {
		v.found = []*shared{{pass: v.scatter.pass, pairs: []*samples.Twins{v.scatter.pair}, certainty: finding.Likely}}
	}
	if s := v.lines.shared(); s != nil && len(v.found) == 0 {
		v.found = []*shared{s}
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
		for _, r := range reads {
			v.looked += r.Looked()
			v.of += r.Samples
		}
		v.count(s, reads)
	}
	if s.certainty == 0 {
		return nil
	}
	s.pairs = slices.DeleteFunc(s.pairs, func(t *samples.Twins) bool { return certainty(t) < s.certainty })
	return s
}

// count all that the workers of a pass delivered, if all of it was looked at.
func (v *verdict) count(s *shared, reads []*samples.Read) {
	if s.census = samples.Count(reads); s.census == nil {
		return
	}
	v.equal = max(v.equal, s.census.Shared)
	v.lines.passes++
	if s.census.Seams == 0 {
		return
	}
	v.lines.with++
	if v.lines.census == nil {
		v.lines.census, v.lines.pass, v.lines.reads = s.census, s.pass, reads
	}
	if s.certainty <= finding.Note { // one stretch of samples is what a seam is
		s.certainty = 0
	}
}

// shared is what the ends of shares have in common, if they do so in all passes: of
// two samples that are equal in the data one may end a share and the other begin the
// next, but not everywhere.
func (m *seams) shared() *shared {
	if m.with == 0 || m.with < m.passes {
		return nil
	}
	s := &shared{pass: m.pass, census: m.census, seams: true, certainty: finding.Proven}
	for i := range m.reads[1:] {
		s.pairs = append(s.pairs, &samples.Twins{A: m.reads[i], B: m.reads[i+1], By: samples.Whole, Partly: true, Equal: m.census.Seam,
			Both: m.census.Seam, First: m.reads[i].Samples - m.census.Seam, Different: m.census.Seam})
	}
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
	switch {
	case t == nil:
	case t.Overruled():
		v.overruled = true
		return nil
	case t.By == samples.Payload && (!t.Payload.Tells() || v.fixed && !t.Payload.Numbers):
		v.numbered = t.Payload.Title()
		return nil
	case t.DrawsShards() && certainty(t) < finding.Proven:
		v.drawn = true
		return nil
	}
	return t
}

// scattered adds what two workers have in common, in orders of their own.
func (v *verdict) scattered(a, b *samples.Read) {
	found := samples.Scattered(a, b)
	v.equal = max(v.equal, found.Shared)
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
			return detect.Found(fmt.Sprintf("the workers of %s read the same samples", words.Count(v.times(), "pass")), f)
		}
		return v.nothing().Noting(f)
	}
	return v.nothing()
}

// times is in how many passes that was found.
func (v *verdict) times() int {
	if v.found[0].seams {
		return v.lines.with
	}
	return len(v.found)
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
	case v.many:
		return detect.CannotTell(fmt.Sprintf("of more than %d workers of a pass no more are compared", mostWorkers))
	case v.alone && !v.unseen && v.compared == 0:
		return detect.NotApplicable("no two workers that deliver samples")
	case v.compared == 0 || v.unseen:
		return detect.CannotTell(fmt.Sprintf("fewer than %d samples of a worker could be compared", enough))
	}
	return v.different()
}

// different samples were found in the workers: whether that can be relied on.
func (v *verdict) different() detect.Verdict {
	switch {
	case v.overruled && !v.fixed:
		return detect.CannotTell("the samples of several workers are equal, and what the collate function makes of them is not: " +
			"they name data of which each worker has its own, or it draws random numbers")
	case !v.fixed:
		return detect.CannotTell(v.ledger.Unfixed(v.ranks[0]))
	case v.numbered != "":
		return detect.CannotTell(fmt.Sprintf("%s is equal in samples of several workers, and other parts of them are not", v.numbered))
	case v.equal > 0:
		return detect.CannotTell(fmt.Sprintf("%s came from several workers: rows that are equal in the data, or that several workers were given",
			words.Count(v.equal, "sample")))
	case !samples.Nearly(v.looked, v.of):
		return detect.CannotTell(fmt.Sprintf("%s of %s samples were looked at, and of these none came from two workers: "+
			"dptrace record --digest full looks at all", words.Number(int64(v.looked)), words.Number(int64(v.of))))
	}
	return v.clean()
}

// parallel reports whether a pass has several workers.
func (v *verdict) parallel() bool {
	return slices.ContainsFunc(v.ranks, func(l *timeline.Loader) bool {
		return slices.ContainsFunc(l.Passes, func(p *timeline.Pass) bool { return len(p.Workers) > 1 })
	})
}

func (v *verdict) clean() detect.Verdict {
	reason := fmt.Sprintf("%s in %s: %s samples, and none of two workers", words.Count(v.workers, "worker"),
		words.Count(v.compared, "pass"), words.Number(int64(v.of)))
	if v.looked < v.of {
		reason += fmt.Sprintf(", of %s that were looked at", words.Number(int64(v.looked)))
	}
	if left := v.left(); left != "" {
		return detect.CannotTell(reason + "; " + left)
	}
	return detect.Clean(reason)
}

// left says what contents were left out.
func (v *verdict) left() string {
	_, contents := v.ledger.Halved()
	return words.OneIn(contents, "positions")
}

// Package unevenshards is the rule uneven-shards: a data-parallel rank runs out of
// data while another one waits for its gradients. docs/rules/uneven-shards.md
// explains it.
package unevenshards

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "uneven-shards",
	DP:      "DP3",
	Title:   "A rank runs out of data before the others",
	Sources: []collect.Any{batches.Delivered},
	Excuses: excuses,
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	r := &ranks{Case: c, passes: map[*timeline.Loader][]*timeline.Pass{}, seen: map[int]bool{}}
	for _, l := range c.Loaders {
		r.passes[l] = used(l)
	}
	for i, a := range c.Loaders {
		for _, b := range c.Loaders[i+1:] {
			if timeline.Together(a.Process, b.Process) {
				r.compare(a, b)
			}
		}
	}
	switch {
	case r.worst != nil:
		w := r.worst
		return detect.Found(fmt.Sprintf("rank %d ended in pass %d after %s, rank %d had %d",
			w.ended.Rank(), w.pass.Number, words.Count(w.pass.Delivered, "batch"), w.left.Rank(), w.longer.Delivered), r.finding())
	case !r.together:
		return detect.NotApplicable("one rank")
	case c.Loaders.Role() == timeline.Eval:
		return detect.NotApplicable("an evaluation: no gradients are reduced")
	case r.excuse != "":
		return detect.CannotTell(r.excuse)
	case r.apart:
		return detect.CannotTell("no two ranks whose gradients are reduced together")
	case r.compared == 0:
		return detect.CannotTell("no pass that two ranks ran")
	}
	return detect.Clean(fmt.Sprintf("%d ranks, as many batches on each in %s", len(r.seen), words.Count(r.compared, "pass")))
}

// ranks of one loader, and what came of comparing them.
type ranks struct {
	*detect.Case
	passes map[*timeline.Loader][]*timeline.Pass // used ones

	worst    *starved     // the first of the surest
	together bool         // two ranks are of one training
	seen     map[int]bool // ranks that ran passes beside another one
	compared int          // passes that at least two ranks ran
	excuse   string       // why counts that differ are no finding
	apart    bool         // ranks of one replica are among them
}

// starved is two ranks one of which ended its training while the other was
// handed batches that it could not step on alone.
type starved struct {
	ended, left *timeline.Loader
	pass        *timeline.Pass // of ended: the first with fewer batches than that of left
	longer      *timeline.Pass // of left
	last        *timeline.Pass // of left: in which it stopped
	how         string         // it is known that left failed
	doubts      []doubt
}

// used are the passes of a loader that were not for evaluation, and brought
// anything.
func used(l *timeline.Loader) (passes []*timeline.Pass) {
	for _, p := range l.Passes {
		if p.Role != timeline.Eval && (p.Delivered > 0 || p.Exhausted) {
			passes = append(passes, p)
		}
	}
	return passes
}

// compare two ranks, pass by pass.
func (r *ranks) compare(a, b *timeline.Loader) {
	r.together = true
	if a.Role == timeline.Eval || b.Role == timeline.Eval {
		return
	}
	p, q := r.passes[a], r.passes[b]
	for len(p) > 0 && len(q) > 0 && p[0].Abandoned && q[0].Abandoned {
		p, q = p[1:], q[1:]
	}
	n := min(len(p), len(q))
	if n == 0 {
		return
	}
	r.seen[a.Rank()], r.seen[b.Rank()] = true, true
	r.compared = max(r.compared, n)
	for i := range n {
		short, long := p[i], q[i]
		if short.Delivered > long.Delivered {
			short, long = long, short
		}
		if short.Delivered == long.Delivered || !short.Exhausted {
			continue
		}
		if r.Relation(a.Process, b.Process) == timeline.Apart { // parts of one replica: asked only here, as it takes time
			r.apart = true
			return
		}
		if r.judge(short, long) {
			return
		}
	}
}

// judge a pass that had fewer batches on one rank, and report whether the other
// was left alone.
func (r *ranks) judge(short, long *timeline.Pass) bool {
	s := &starved{ended: short.Loader, left: long.Loader, pass: short, longer: long, last: r.last(long.Loader)}
	excuse := r.sure(s)
	if r.excuse == "" {
		r.excuse = fmt.Sprintf("in pass %d rank %d had %s and rank %d %d",
			short.Number, short.Loader.Rank(), words.Count(short.Delivered, "batch"), long.Loader.Rank(), long.Delivered)
	}
	if excuse != "" {
		if !strings.Contains(r.excuse, excuse) {
			r.excuse += "; " + excuse
		}
		return false
	}
	if r.worst == nil || len(s.doubts) < len(r.worst.doubts) {
		r.worst = s
	}
	return true
}

// sure says why no rank was left alone; "" if one was, with what may excuse it.
//
// Ranks may run different numbers of batches on purpose: in a join context, when
// they count steps and not passes, when all of them leave the loop as soon as
// one has no data. What tells the bug from those is that the shorter rank's
// training is over, at the end of its data and by nothing else, and that the
// longer one was in the midst of a pass when it failed, and has not stepped more
// often.
func (r *ranks) sure(s *starved) (excuse string) {
	a, b, end := s.ended.Process, s.left.Process, r.last(s.ended)
	switch {
	case a.Joined() || b.Joined():
		return "a join context was entered, in which a rank may run out of data before the others"
	case !end.Exhausted || after(a, end, true) || r.total(s.left) <= r.total(s.ended):
		return "each rank went on with its next pass: its training counts steps, or averages over different passes"
	case s.last.Exhausted:
		return "each ran to the end of its data: a join context, or no gradients are reduced in each step"
	case after(b, s.last, false):
		return "the longer one left the loop and went on: the ranks may agree on when to end"
	case b.Steps > a.Steps:
		return "the longer one stepped on alone: a join context, or no gradients are reduced in each step"
	}
	if how := failure(a, true); how != "" {
		return fmt.Sprintf("rank %d failed by itself after its last batch: it %s", a.Rank, how)
	}
	if how := failure(b, false); how != "" {
		return fmt.Sprintf("rank %d failed by itself: it %s", b.Rank, how)
	}
	if end := lastCalls(b); end != nil && end.Calls > 0 && !eachStep(end, b) {
		return fmt.Sprintf("the ranks had met after the last batch, and no step came of it; then %s failed: they agree on when to end", end.Class)
	}
	other := false
	if s.how, other = r.failed(b); s.how == "" {
		return "the longer one left its loop, and no failure was seen: the ranks may agree on when to end"
	}
	s.doubts = r.doubtsOf(s, other)
	return ""
}

// last is the last pass of a loader that was used.
func (r *ranks) last(l *timeline.Loader) *timeline.Pass { return r.passes[l][len(r.passes[l])-1] }

// total of the batches that a rank was handed.
func (r *ranks) total(l *timeline.Loader) (n int) {
	for _, p := range r.passes[l] {
		n += p.Delivered
	}
	return n
}

// after reports whether a process had another pass (training: that was no
// evaluation) after one had ended.
func after(p *timeline.Process, end *timeline.Pass, training bool) bool {
	return slices.ContainsFunc(p.Loaders, func(l *timeline.Loader) bool {
		return slices.ContainsFunc(l.Passes, func(pass *timeline.Pass) bool {
			return pass != end && pass.Begin >= end.End && (!training || pass.Role == timeline.Train)
		})
	})
}

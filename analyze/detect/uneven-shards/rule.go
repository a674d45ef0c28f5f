// Package uneven is the rule uneven-shards: a data-parallel rank runs out of
// data while another one waits for its gradients. docs/rules/uneven-shards.md
// explains it.
package uneven

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/deliveries"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	DP:      dp,
	Title:   "A rank runs out of data before the others",
	Sources: []collect.Any{deliveries.Source},
	Judge:   detect.Adapt(judge),
}

const (
	id = "uneven-shards"
	dp = "DP3"
)

var tables = []string{"process", "loader", "pass", "batch_next"}

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	for _, g := range deliveries.Groups(t) {
		v := &verdict{Timeline: t, group: g, d: collect.Of(e, deliveries.Source), passes: map[*timeline.Loader][]*timeline.Pass{}}
		v.look()
		if v.worst != nil {
			findings = append(findings, v.finding())
		}
		checks = append(checks, v.check())
	}
	return findings, checks
}

// starved is two ranks one of which ended its training while the other was
// handed batches that it could not step on alone.
type starved struct {
	ended, left *timeline.Loader
	pass        *timeline.Pass // of ended: the first with fewer batches than that of left
	longer      *timeline.Pass // of left
	last        *timeline.Pass // of left: in which it stopped
	how         string         // it is known that left failed
	certainty   finding.Certainty
}

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	group  *deliveries.Group
	d      *deliveries.Deliveries
	passes map[*timeline.Loader][]*timeline.Pass // used ones

	worst    *starved
	pairs    []*starved
	compared int // passes that at least two ranks ran
	ranks    map[int]bool
	excuse   string // why counts that differ are no finding
	apart    bool   // ranks of one replica are among them
}

func (v *verdict) look() {
	v.ranks = map[int]bool{}
	for _, l := range v.group.Loaders {
		v.passes[l] = used(l)
	}
	for i, a := range v.group.Loaders {
		for _, b := range v.group.Loaders[i+1:] {
			if !timeline.Together(a.Process, b.Process) {
				continue
			}
			v.compare(a, b)
		}
	}
	slices.SortStableFunc(v.pairs, func(a, b *starved) int { return -cmp.Compare(a.certainty, b.certainty) })
	if len(v.pairs) > 0 {
		v.worst = v.pairs[0]
	}
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
func (v *verdict) compare(a, b *timeline.Loader) {
	if a.Role == timeline.Eval || b.Role == timeline.Eval {
		return
	}
	p, q := v.passes[a], v.passes[b]
	for len(p) > 0 && len(q) > 0 && p[0].Abandoned && q[0].Abandoned {
		p, q = p[1:], q[1:]
	}
	n := min(len(p), len(q))
	if n == 0 {
		return
	}
	v.ranks[a.Rank()], v.ranks[b.Rank()] = true, true
	v.compared = max(v.compared, n)
	for i := range n {
		short, long := p[i], q[i]
		if short.Delivered > long.Delivered {
			short, long = long, short
		}
		if short.Delivered == long.Delivered || !short.Exhausted {
			continue
		}
		if v.Relation(a.Process, b.Process) == timeline.Apart { // parts of one replica: asked only here, as it takes time
			v.apart = true
			return
		}
		s := &starved{ended: short.Loader, left: long.Loader, pass: short, longer: long, last: v.last(long.Loader)}
		if v.excuse == "" {
			v.excuse = fmt.Sprintf("in pass %d rank %d had %s and rank %d %d", short.Number, short.Loader.Rank(), words.Count(short.Delivered, "batch"), long.Loader.Rank(), long.Delivered)
		}
		if s.certainty = v.sure(s); s.certainty > 0 {
			v.pairs = append(v.pairs, s)
			return
		}
	}
}

// last is the last pass of a loader that was used.
func (v *verdict) last(l *timeline.Loader) *timeline.Pass {
	return v.passes[l][len(v.passes[l])-1]
}

// total of the batches that a rank was handed.
func (v *verdict) total(l *timeline.Loader) (n int) {
	for _, p := range v.passes[l] {
		n += p.Delivered
	}
	return n
}

// sure is how sure it is that one rank was left alone; 0: it is not.
//
// Ranks may run different numbers of batches on purpose: in a join context, when
// they count steps and not passes, when all of them leave the loop as soon as
// one has no data. What tells the bug from those is that the shorter rank's
// training is over, at the end of its data, and that the longer one was in the
// midst of a pass when it failed, and has not stepped more often.
func (v *verdict) sure(s *starved) finding.Certainty {
	end := v.last(s.ended)
	switch {
	case s.ended.Process.Joined() || s.left.Process.Joined():
		v.because("a join context was entered, in which a rank may run out of data before the others")
		return 0
	case !end.Exhausted || after(s.ended.Process, end, true) || v.total(s.left) <= v.total(s.ended):
		v.because("each rank went on with its next pass: its training counts steps, or averages over different passes")
		return 0
	case s.last.Exhausted:
		v.because("each ran to the end of its data: a join context, or no gradients are reduced in each step")
		return 0
	case after(s.left.Process, s.last, false):
		v.because("the longer one left the loop and went on: the ranks may agree on when to end")
		return 0
	case s.left.Process.Steps > s.ended.Process.Steps:
		v.because("the longer one stepped on alone: a join context, or no gradients are reduced in each step")
		return 0
	}
	other := false
	if s.how, other = v.failed(s.left.Process); s.how == "" {
		v.because("the longer one left its loop, and no failure was seen: the ranks may agree on when to end")
		return 0
	}
	a, b := s.ended.Process, s.left.Process
	if !v.Reduced(a, b) || s.pass.Role != timeline.Train || s.longer.Role != timeline.Train || s.pass.Blind || s.longer.Blind || s.last.Blind || other {
		return finding.Likely
	}
	return finding.Proven
}

func (v *verdict) because(why string) {
	if !strings.Contains(v.excuse, why) {
		v.excuse += "; " + why
	}
}

// after reports whether a process had another pass (training: that was no
// evaluation) after one had ended.
func after(p *timeline.Process, end *timeline.Pass, training bool) bool {
	for _, l := range p.Loaders {
		for _, pass := range l.Passes {
			if pass != end && pass.Begin >= end.End && (!training || pass.Role == timeline.Train) {
				return true
			}
		}
	}
	return false
}

// failed says how it is known that a rank, or the command that ran it, failed;
// "" if it is not. other: for a reason that may be another.
func (v *verdict) failed(p *timeline.Process) (how string, other bool) {
	for i := len(p.Raised) - 1; i >= 0; i-- {
		if e := &p.Raised[i]; e.Stage == "exit" {
			return fmt.Sprintf("ended with %s: %s", e.Type, firstLine(e.Message)), !left.MatchString(e.Type + ": " + e.Message)
		}
	}
	switch code := v.ExitCodeOf(p.Part); {
	case p.EndedBadly() && p.Exit.Signal != 0:
		return fmt.Sprintf("was ended by signal %d", p.Exit.Signal), p.Exit.Signal == timeline.SIGBUS || p.Exit.Signal == timeline.SIGSEGV
	case p.EndedBadly():
		return fmt.Sprintf("ended with exit code %d", p.Exit.ExitCode), false
	case p.EndKnown() || code <= 0:
		return "", false
	default:
		return fmt.Sprintf("began no other pass, and the recorded command ended with exit code %d", code), false
	}
}

// left is what the backends say to a rank whose peer is gone or silent.
var left = regexp.MustCompile(`(?i)DistBackendError|DistNetworkError|gloo|nccl|monitored.?barrier|connection (closed|reset)|broken pipe|timed? ?out|wait(ing)? timeout|peer`)

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.group.ID, Status: finding.CannotTell}
	gap := ""
	for _, l := range v.group.Loaders {
		if g := v.Losses(l, tables); g != "" {
			gap = g
		}
	}
	role := v.group.Loaders.Role()
	switch {
	case v.worst != nil:
		c.Status, c.Reason = finding.Found, fmt.Sprintf("rank %d ended in pass %d after %s, rank %d had %d", v.worst.ended.Rank(), v.worst.pass.Number, words.Count(v.worst.pass.Delivered, "batch"),
			v.worst.left.Rank(), v.worst.longer.Delivered)
	case gap != "":
		c.Reason = gap
	case len(v.group.Loaders) < 2:
		c.Reason = "one rank"
	case role == timeline.Eval:
		c.Status, c.Reason = finding.Clean, "an evaluation: no gradients are reduced"
	case v.excuse != "":
		c.Reason = v.excuse
	case v.apart:
		c.Reason = "no two ranks whose gradients are reduced together"
	case v.compared == 0:
		c.Reason = "one rank"
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%d ranks, as many batches on each in %s", len(v.ranks), words.Count(v.compared, "pass"))
	}
	return c
}

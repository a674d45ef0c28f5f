// Package sharedranks is the rule shard-duplicate-ranks: data-parallel ranks are
// given the same samples. docs/rules/shard-duplicate-ranks.md explains it.
package sharedranks

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:       id,
	DP:       dp,
	Title:    "Ranks are given the same samples",
	Sources:  []collect.Any{samples.Source, values.Source},
	Explains: []detect.Explained{{Rule: "rng-duplicate-ranks", Why: "the ranks are given the same samples"}},
	Judge:    detect.Adapt(judge),
}

const (
	id = "shard-duplicate-ranks"
	dp = "DP2"
)

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	ledger, held := collect.Of(e, samples.Source), collect.Of(e, values.Source)
	for _, ranks := range t.ByLoader() {
		v := &verdict{Timeline: t, ledger: ledger, held: held, ranks: ranks, compared: map[[2]int]bool{}, passes: map[int]bool{}, excuses: map[string]bool{}}
		if slices.ContainsFunc(ranks, (*timeline.Loader).Iterable) {
			v.contents()
		} else {
			v.indices()
		}
		v.choose()
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
	held   *values.Contents
	ranks  timeline.Ranks
	taken  *samples.Members // what the ranks take: computed where it is asked for

	pairs    []*pair // that have samples in common, and should not
	worst    *pair
	compared map[[2]int]bool // pairs of ranks that were
	passes   map[int]bool
	apart    bool            // ranks of one replica are among them
	random   bool            // contents of samples may be drawn anew for each
	blind    bool            // too few were looked at to tell whether two ranks read the same, each in its order
	excuses  map[string]bool // why samples in common, or missing evidence, are no finding
}

// pair is two ranks that were given the same samples in a pass.
type pair struct {
	a, b      *timeline.Pass
	certainty finding.Certainty
	cause     string

	overlap *samples.Overlap // by index
	common  *samples.Common
	of      int             // samples of the rank that had fewer
	twins   *samples.Twins  // by contents
	list    string          // that both are read from, each in an order of its own
	shared  *samples.Shared // by the lists that the ranks go through, where these are not one
}

func (v *verdict) choose() {
	slices.SortStableFunc(v.pairs, func(a, b *pair) int { return int(b.certainty - a.certainty) })
	if len(v.pairs) > 0 {
		v.worst = v.pairs[0]
	}
}

// indices compares what the samplers of the ranks handed out.
func (v *verdict) indices() {
	for _, o := range v.ledger.Overlaps(v.ranks) {
		for i, a := range o.Ranks {
			for k := i + 1; k < len(o.Ranks); k++ {
				b := o.Ranks[k]
				if o.Distinct[i] == 0 || o.Distinct[k] == 0 || !timeline.Together(a.Loader.Process, b.Loader.Process) {
					continue
				}
				v.pair(o, i, k)
			}
		}
	}
}

func (v *verdict) pair(o *samples.Overlap, i, k int) {
	a, b := o.Ranks[i], o.Ranks[k]
	relation := v.Relation(a.Loader.Process, b.Loader.Process)
	if relation == timeline.Apart {
		v.apart = true
		return
	}
	v.compared[[2]int{a.Loader.Rank(), b.Loader.Rank()}] = true
	v.passes[o.Number] = true
	c := o.Of(i, k)
	p := &pair{a: a.Pass, b: b.Pass, overlap: o, common: c, of: min(o.Distinct[i], o.Distinct[k])}
	if lists, differ := v.lists(a, b); differ {
		v.unlike(p, lists, relation, v.ledger.Sure(a, b))
		return
	}
	if c.Samples == 0 || v.padding(p) {
		return
	}
	if v.part(p, a, b) {
		v.unlike(p, v.members().Between(a, b), relation, v.ledger.Sure(a, b))
		return
	}
	why, cause, sure := promise(p, a.Object, b.Object)
	if sure == 0 {
		v.excuses[why] = true
		return
	}
	p.cause = cause
	p.certainty = v.grade(p, relation, v.ledger.Sure(a, b), sure)
	if p.certainty > 0 {
		v.pairs = append(v.pairs, p)
	}
}

// padding reports whether what two ranks have in common is no more than what a
// distributed sampler or an even batch sampler repeats, to have as many on each
// rank: at most a batch for each rank, where a pass ends or begins.
func (v *verdict) padding(p *pair) bool {
	common, inner := p.common.Samples*v.ledger.Scale(), p.common.Inner*v.ledger.Scale()
	batch := 1
	for _, pass := range []*timeline.Pass{p.a, p.b} {
		if pass.Delivered > 0 {
			batch = max(batch, int(pass.DataLoader().BatchSize), (v.ledger.Scale()*p.of+pass.Delivered-1)/pass.Delivered)
		}
	}
	if common > batch*len(p.overlap.Ranks) {
		return false
	}
	return inner < enough || 2*p.common.Samples < p.of
}

// enough samples in common are none by chance.
const enough = 8

// grade is how sure it is that the ranks should have been given other samples.
func (v *verdict) grade(p *pair, relation timeline.Relation, same samples.Sameness, sure finding.Certainty) finding.Certainty {
	switch {
	case relation == timeline.Undecided:
		v.excuses["ranks are given the same samples, and the program made process groups or a mesh of its own, or exchanges tensors or objects by hand: they may be in one replica, or have trainings of their own"] = true
		return 0
	case relation == timeline.NoGroups && !(p.a.Loader.Process.Initialized() && p.b.Loader.Process.Initialized()):
		v.excuses["ranks are given the same samples, and there is no process group of torch's that could reduce their gradients: they may have trainings of their own"] = true
		return 0
	case p.a.Role == timeline.Eval || p.b.Role == timeline.Eval:
		v.excuses[evaluation] = true
		return 0
	case same == samples.Unknown && relation == timeline.DataParallel && p.a.Role == timeline.Train && v.reordered(p):
		return min(sure, finding.Likely)
	case same == samples.Unknown:
		v.excuses["the ranks were given the same indices; whether these are the same samples is not known: the contents of their datasets were not seen to agree"] = true
		return 0
	case p.a.Blind || p.b.Blind:
		return min(sure, finding.Likely)
	case relation != timeline.DataParallel, same != samples.Same, p.a.Role != timeline.Train, p.b.Role != timeline.Train:
		return min(sure, finding.Likely)
	}
	return sure
}

const evaluation = "an evaluation: each rank goes through the same samples, which costs time only"

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.ranks.ID(), Status: finding.CannotTell}
	gap := v.ranks.Distinct(func(l *timeline.Loader) string { return v.Losses(l, samples.Tables) })
	switch {
	case v.worst != nil:
		c.Status, c.Reason = finding.Found, v.worst.short(v)
	case len(v.excuses) > 0 && !v.only(evaluation):
		c.Reason = first(v.excuses)
	case gap != "":
		c.Reason = gap
	case v.ranks.Role() == timeline.Eval && len(v.compared) > 0:
		c.Status, c.Reason = finding.Clean, "an evaluation"
		if v.only(evaluation) {
			c.Reason = evaluation
		}
	case len(v.compared) == 0 && v.apart:
		c.Reason = "no two ranks whose gradients are reduced together"
	case len(v.compared) == 0 && len(v.processes()) < 2:
		c.Reason = "one rank"
	case len(v.compared) == 0:
		c.Reason = "no pass whose samples are known on two ranks"
	case v.random:
		c.Reason = v.ledger.WhyNotFixed(v.ranks[0])
	case v.blind:
		c.Reason = "too few samples were looked at to exclude that ranks read the same ones, each in an order of its own: dptrace record --digest full looks at all"
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%s of ranks in %s: other samples on each", words.Count(len(v.compared), "pair"), words.Count(len(v.passes), "pass"))
		if told := v.told(); told != "" {
			c.Reason += "; " + told
		}
	}
	return c
}

// told says which samples were left out.
func (v *verdict) told() string {
	if v.ranks[0].Iterable() {
		return v.ledger.ContentsSamplingNote()
	}
	return v.ledger.SamplingNote()
}

func (v *verdict) only(excuse string) bool { return len(v.excuses) == 1 && v.excuses[excuse] }

// processes that have the loader.
func (v *verdict) processes() map[*timeline.Process]bool {
	all := map[*timeline.Process]bool{}
	for _, l := range v.ranks {
		if l.Rank() >= 0 {
			all[l.Process] = true
		}
	}
	return all
}

func first(words map[string]bool) string {
	least := ""
	for w := range words {
		if w != evaluation && (least == "" || w < least) {
			least = w
		}
	}
	return least
}

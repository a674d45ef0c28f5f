// Package shardduplicateranks is the rule shard-duplicate-ranks: data-parallel ranks are
// given the same samples. docs/rules/shard-duplicate-ranks.md explains it.
package shardduplicateranks

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:       "shard-duplicate-ranks",
	DP:       "DP2",
	Title:    "Ranks are given the same samples",
	Sources:  []collect.Any{samples.Source},
	Excuses:  excuses,
	Explains: []detect.Explained{{Rule: "rng-duplicate-ranks", Why: "the ranks are given the same samples"}},
	Judge:    judge,
}

func judge(c *detect.Case) detect.Verdict {
	v := &verdict{Timeline: c.Timeline, ledger: detect.Of(c, samples.Source), ranks: c.Loaders,
		compared: map[[2]int]bool{}, passes: map[int]bool{}, excuses: map[string]bool{}}
	if slices.ContainsFunc(v.ranks, (*timeline.Loader).Iterable) {
		v.contents()
	} else {
		v.indices()
	}
	slices.SortStableFunc(v.pairs, func(a, b *pair) int { return cmp.Compare(len(a.doubts), len(b.doubts)) })
	if len(v.pairs) > 0 {
		return detect.Found(v.pairs[0].short(v), v.finding(v.pairs[0]))
	}
	return v.nothing()
}

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	ledger *samples.Attribution
	ranks  timeline.Ranks
	taken  *samples.Members // what the ranks take: computed where it is asked for

	pairs    []*pair         // that have samples in common, and should not; the surest first
	compared map[[2]int]bool // pairs of ranks that were
	passes   map[int]bool
	apart    bool            // ranks of one replica are among them
	many     bool            // workers of one pass, more than are compared
	random   bool            // contents of samples may be drawn anew for each
	blind    bool            // too few were looked at to tell whether two ranks read the same, each in its order
	excuses  map[string]bool // why samples in common, or missing evidence, are no finding
}

// pair is two ranks that were given the same samples in a pass.
type pair struct {
	a, b   *timeline.Pass
	doubts []doubt
	cause  string

	overlap *samples.Overlap // by index
	common  *samples.Common
	of      int             // samples of the rank that had fewer
	twins   *samples.Twins  // by contents
	list    string          // that both are read from, each in an order of its own
	shared  *samples.Shared // by the lists that the ranks go through, where these are not one
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
	if why := promise(p, a.Object, b.Object); why != "" {
		v.excuses[why] = true
		return
	}
	v.grade(p, relation, v.ledger.Sure(a, b))
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

// grade keeps a pair of ranks that should have been given other samples, with what
// may excuse it, or says why nothing can be said.
func (v *verdict) grade(p *pair, relation timeline.Relation, same samples.Sameness) {
	training := p.a.Role == timeline.Train && p.b.Role == timeline.Train
	switch {
	case relation == timeline.Undecided:
		v.excuses["ranks are given the same samples, and the program made process groups or a mesh of its own, or exchanges tensors or "+
			"objects by hand: they may be in one replica, or have trainings of their own"] = true
		return
	case relation == timeline.NoGroups && !(p.a.Loader.Process.Initialized() && p.b.Loader.Process.Initialized()):
		v.excuses["ranks are given the same samples, and there is no process group of torch's that could reduce their gradients: they may "+
			"have trainings of their own"] = true
		return
	case p.a.Role == timeline.Eval || p.b.Role == timeline.Eval:
		v.excuses[evaluation] = true
		return
	case same == samples.Unknown && !(relation == timeline.DataParallel && training && v.reordered(p)):
		v.excuses["the ranks were given the same indices; whether these are the same samples is not known: the contents of their datasets "+
			"were not seen to agree"] = true
		return
	}
	if relation != timeline.DataParallel {
		p.doubts = append(p.doubts, oneModel)
	}
	if same != samples.Same {
		p.doubts = append(p.doubts, otherContents)
	}
	if !training || p.a.Blind || p.b.Blind {
		p.doubts = append(p.doubts, untrained)
	}
	p.doubts = append(p.doubts, v.ownDraws(p)...)
	v.pairs = append(v.pairs, p)
}

const evaluation = "an evaluation: each rank goes through the same samples, which costs time only"

// nothing was found.
func (v *verdict) nothing() detect.Verdict {
	switch {
	case v.processes() < 2:
		return detect.NotApplicable("one rank")
	case v.ranks.Role() == timeline.Eval && v.only(evaluation):
		return detect.NotApplicable(evaluation)
	case v.ranks.Role() == timeline.Eval:
		return detect.NotApplicable("an evaluation")
	case len(v.compared) == 0 && v.apart:
		return detect.NotApplicable("no two ranks whose gradients are reduced together")
	case len(v.excuses) > 0 && !v.only(evaluation):
		return detect.CannotTell(first(v.excuses))
	case len(v.compared) == 0:
		return detect.CannotTell("no pass whose samples are known on two ranks")
	case v.random:
		return detect.CannotTell(v.unfixed())
	case v.blind:
		return detect.CannotTell("too few samples were looked at to exclude that ranks read the same ones, each in an order of its own: " +
			"dptrace record --digest full looks at all")
	case v.many:
		return detect.CannotTell(fmt.Sprintf("of more than %d workers of a pass no more are compared", mostWorkers))
	}
	reason := fmt.Sprintf("%s of ranks in %s: other samples on each", words.Count(len(v.compared), "pair"), words.Count(len(v.passes), "pass"))
	if left := v.left(); left != "" {
		reason += "; " + left
	}
	return detect.Clean(reason)
}

// unfixed says why contents that differ may be one sample's.
func (v *verdict) unfixed() string {
	return v.ledger.Unfixed(v.ranks[0])
}

// left says which samples were left out.
func (v *verdict) left() string {
	indices, contents := v.ledger.Halved()
	if v.ranks[0].Iterable() {
		return words.OneIn(contents, "positions")
	}
	return words.OneIn(indices, "indices")
}

func (v *verdict) only(excuse string) bool { return len(v.excuses) == 1 && v.excuses[excuse] }

// processes that have the loader, and a rank.
func (v *verdict) processes() int {
	all := map[*timeline.Process]bool{}
	for _, l := range v.ranks {
		if l.Rank() >= 0 {
			all[l.Process] = true
		}
	}
	return len(all)
}

// first of some excuses, but for evaluation.
func first(excuses map[string]bool) string {
	least := ""
	for w := range excuses {
		if w != evaluation && (least == "" || w < least) {
			least = w
		}
	}
	return least
}

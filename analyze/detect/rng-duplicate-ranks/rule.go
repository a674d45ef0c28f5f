// Package ranks is the rule rng-duplicate-ranks: ranks that see other samples
// augment them with the same random numbers. docs/rules/rng-duplicate-ranks.md
// explains it.
package ranks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
	"github.com/dptrace/dptrace/analyze/reseed"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	Title:   "Ranks augment other samples with the same random numbers",
	Sources: []collect.Any{draws.Source},
	Judge:   detect.Adapt(judge),
}

const id = "rng-duplicate-ranks"

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	s := collect.Of(e, draws.Source)
	for _, g := range redraw.Groups(t, s.Draws(t)) {
		c := &comparison{Timeline: t, group: g, compared: map[redraw.Key][]*draws.Draws{}}
		j := c.judge()
		checks = append(checks, g.Check(t, s, j))
		if len(j.Hits) > 0 {
			r := &redraw.Report{Rule: id, Scope: reseed.Ranks, Timeline: t, Streams: s, Group: g, Hits: j.Hits}
			findings = append(findings, r.Finding(c.text(j.Hits)))
		}
	}
	return findings, checks
}

const sameSamples = "the ranks got the same samples, which makes equal numbers the lesser trouble (shard-duplicate-ranks)"

// comparison of one loader's ranks.
type comparison struct {
	*timeline.Timeline
	group    *redraw.Group
	hits     redraw.Hits
	compared map[redraw.Key][]*draws.Draws
	streams  int
	// Pairs of draws that agree although nothing is wrong, or not this.
	sameSamples, apart, undecided int
}

func (c *comparison) judge() redraw.Outcome {
	ranks := 0
	for _, replicas := range c.replicas() {
		ranks = max(ranks, len(replicas))
		if len(replicas) < 2 {
			continue
		}
		c.compare(replicas)
	}
	j := redraw.Outcome{Rule: id, Hits: c.hits.List(c.compared), Compared: c.streams}
	switch {
	case c.sameSamples > 0:
		j.Compared, j.Nothing = 0, sameSamples
	case c.undecided > 0 && len(j.Hits) == 0:
		j.Compared, j.Nothing = 0, "ranks draw the same numbers, and the program made process groups or a mesh of its own, which may put them into one replica"
	case ranks < 2 && len(c.group.Loaders) > 1 && c.apart > 0:
		j.Nothing = "no two ranks whose gradients are reduced together"
	case ranks < 2:
		j.Nothing = "one rank"
	}
	return j
}

// replicas sorts the loader's ranks into those that may be compared: alive
// together, and not parts of one replica of a model.
func (c *comparison) replicas() [][]*timeline.Loader {
	byRank := map[int][]*timeline.Loader{}
	for _, l := range c.group.Loaders {
		if l.Rank() >= 0 {
			byRank[l.Rank()] = append(byRank[l.Rank()], l)
		}
	}
	grouped := true
	for _, list := range byRank {
		slices.SortFunc(list, func(a, b *timeline.Loader) int { return cmp.Compare(a.Process.Begin, b.Process.Begin) })
		for _, l := range list {
			grouped = grouped && len(l.Process.Peers) > 0
		}
	}
	type set struct {
		life  int   // how often the rank was started before
		peers int64 // lowest rank of its peers
	}
	sets := map[set][]*timeline.Loader{}
	for _, list := range byRank {
		for life, l := range list {
			k := set{life, -1}
			if grouped {
				k.peers = l.Process.Peers[0][0]
			}
			sets[k] = append(sets[k], l)
		}
	}
	if len(sets) > 1 {
		c.apart = len(sets)
	}
	var out [][]*timeline.Loader
	for _, list := range sets {
		slices.SortFunc(list, func(a, b *timeline.Loader) int { return cmp.Compare(a.Rank(), b.Rank()) })
		out = append(out, list)
	}
	slices.SortFunc(out, func(a, b []*timeline.Loader) int {
		return cmp.Or(cmp.Compare(a[0].Rank(), b[0].Rank()), cmp.Compare(a[0].Process.Begin, b[0].Process.Begin))
	})
	return out
}

// compare passes of the same number between ranks.
func (c *comparison) compare(loaders []*timeline.Loader) {
	type at struct {
		redraw.Key
		pass int
	}
	lists := map[at][]*draws.Draws{}
	for _, l := range loaders { // by rank
		for _, d := range c.group.Draws[l] {
			if !d.Worker.Pass.Abandoned {
				k := at{redraw.KeyOf(d), d.Worker.Pass.Number}
				lists[k] = append(lists[k], d)
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(lists), func(a, b at) int {
		return cmp.Or(cmp.Compare(a.pass, b.pass), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
	})
	for _, k := range order {
		drawn := lists[k]
		var cover, rare draws.IntervalSet
		ranks := map[int]bool{}
		n := 0
		for _, d := range drawn {
			if !d.Data() {
				c.hits.Add(rare.Add(d), c.note)
				continue
			}
			ranks[d.Worker.Pass.Loader.Rank()] = true
			n++
			c.compared[k.Key] = append(c.compared[k.Key], d)
			c.hits.Add(cover.Add(d), c.certainty)
		}
		if len(ranks) > 1 {
			c.streams += n
		}
	}
}

// certainty that it is a bug when two ranks drew the same.
func (c *comparison) certainty(a, b *draws.Draws) finding.Certainty {
	p, q := a.Worker.Pass, b.Worker.Pass
	if p.Loader.Rank() == q.Loader.Rank() || !timeline.Together(p.Loader.Process, q.Loader.Process) {
		return 0
	}
	relation, blind := c.Relation(p.Loader.Process, q.Loader.Process), p.Blind || q.Blind
	samples := p.Order.Compare(&q.Order)
	switch {
	case relation == timeline.Apart:
		return 0 // parts of one replica get the same data, and must
	case relation == timeline.Undecided:
		c.undecided++
		return 0
	case samples == timeline.SamplesSame:
		c.sameSamples++
		return finding.Note
	case samples == timeline.SamplesUnknown && blind:
		return finding.Note // they may be the same
	case p.Role == timeline.Eval || q.Role == timeline.Eval:
		return finding.Note
	case (p.Role != timeline.Train || q.Role != timeline.Train) && blind:
		return finding.Note // an evaluation, maybe
	case relation != timeline.DataParallel || p.Role != timeline.Train || q.Role != timeline.Train || a.Ordering || b.Ordering:
		return finding.Likely
	}
	return finding.Proven
}

// note: draws in a few fetches only, retries or a cache.
func (c *comparison) note(a, b *draws.Draws) finding.Certainty {
	if a.Drew == 0 || b.Drew == 0 || a.Reseeded > 0 || b.Reseeded > 0 {
		return 0
	}
	return min(c.certainty(a, b), finding.Note)
}

func (c *comparison) text(hits []*redraw.Hit) redraw.Text {
	ranks := redraw.RanksOf(hits)
	passes, all := map[int]bool{}, map[int]bool{}
	for _, h := range hits {
		for _, p := range h.Pairs {
			passes[p.Second.Worker.Pass.Number] = true
		}
		for _, d := range h.All {
			all[d.Worker.Pass.Number] = true
		}
	}
	title := fmt.Sprintf("%s draw the same random numbers from %s", words.Upper(words.Ints("rank", ranks)), redraw.Names(hits))
	if len(all) > 1 {
		title += ", in " + words.Of(len(passes), len(all), "pass")
	}
	total := redraw.Totals(hits)
	p := hits[0].Pairs[0]
	text := redraw.Text{
		Title:     title,
		Cost:      fmt.Sprintf("%d ranks drew the same %s numbers in %d of %d passes: %s", len(ranks), redraw.Outputs(hits[0], p.Words), len(passes), max(len(all), len(passes)), total.Variety()),
		NotABugIf: "these ranks hold parts of one model and must see the same data (tensor, pipeline or context parallel).",
	}
	a, b := p.First.Worker.Pass, p.Second.Worker.Pass
	if a.Seeded && b.Seeded && a.BaseSeed == b.BaseSeed && p.First.Worker.Number >= 0 {
		text.Why = append(text.Why, fmt.Sprintf("PyTorch seeds workers from the base seed of the pass, and that is %d on both ranks.", a.BaseSeed))
	}
	switch relation := c.Relation(a.Loader.Process, b.Loader.Process); {
	case relation == timeline.DataParallel:
		text.Why = append(text.Why, "The gradients of these ranks are reduced together (DDP or FSDP), so their samples make one batch.")
	case hits[0].Certainty == finding.Likely:
		text.Why = append(text.Why, "It was not seen that the gradients of these ranks are reduced together, so they may be parts of one model.")
	}
	return text
}

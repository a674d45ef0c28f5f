package rngduplicateranks

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
	"github.com/dptrace/dptrace/analyze/reseed"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

func (c *comparison) report(hits []*redraw.Hit) finding.Finding {
	ranks := redraw.RanksOf(hits)
	passes, all := map[int]bool{}, map[int]bool{}
	for _, h := range hits {
		for _, p := range h.Pairs {
			passes[p.Second.Worker.Pass.Number] = true
		}
		for _, d := range h.Compared {
			all[d.Worker.Pass.Number] = true
		}
	}
	title := fmt.Sprintf("%s draw the same random numbers from %s", words.Upper(words.Ints("rank", ranks)), redraw.Names(hits))
	if len(all) > 1 {
		title += ", in " + words.Of(len(passes), len(all), "pass")
	}
	r := redraw.Report{Scope: reseed.Ranks, Loader: c.First(), Streams: c.streams, Effects: c.Effects, Hits: hits}
	return r.Finding(redraw.Wording{
		Title: title,
		Cost: fmt.Sprintf("%d ranks drew the same numbers in %d of %d passes (%s): %s", len(ranks),
			len(passes), max(len(all), len(passes)), redraw.FirstTime(hits[0]), redraw.Variety(hits)),
		Why: c.why(hits[0]),
	})
}

// why the ranks are alike, and must not be.
func (c *comparison) why(h *redraw.Hit) (why []string) {
	p := h.Pairs[0]
	a, b := p.First.Worker.Pass, p.Second.Worker.Pass
	if a.Seeded && b.Seeded && a.BaseSeed == b.BaseSeed && p.First.Worker.Number >= 0 {
		why = append(why, fmt.Sprintf("PyTorch seeds workers from the base seed of the pass, and that is %d on both ranks.", a.BaseSeed))
	}
	switch relation := c.Relation(a.Loader.Process, b.Loader.Process); {
	case relation == timeline.DataParallel:
		why = append(why, "The gradients of these ranks are reduced together (DDP or FSDP), so their samples make one batch.")
	case h.Certainty > finding.Note:
		why = append(why, "It was not seen that the gradients of these ranks are reduced together, so they may be parts of one model.")
	}
	return why
}

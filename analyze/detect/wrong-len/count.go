package wronglen

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// count is a pass of an IterableDataset that gave another number of samples than
// len() of the dataset had given.
type count struct {
	pass   *timeline.Pass
	object *traces.Loader
	seq    uint64 // of the pass's end
	got    int64
	asked  int64
	sure   finding.Certainty
	why    string // it is none
}

// counted compares what passes gave with what len() had given.
func (v *verdict) counted() {
	sums := map[int]int64{} // of all ranks, by number of the pass
	for _, l := range v.group.Loaders {
		for _, p := range l.Passes {
			sums[p.Number] += v.samples(p)
		}
	}
	for _, l := range v.group.Loaders {
		for _, p := range l.Passes {
			o := p.DataLoader()
			end, ok := v.c.End(p)
			asked := max(end.LenAsked, o.LenAsked)
			if !o.Iterable || asked <= 0 || !ok || !p.Exhausted || p.Blind {
				continue
			}
			c := &count{pass: p, object: o, seq: end.Seq, got: v.samples(p), asked: asked}
			v.compare(c, sums[p.Number])
		}
	}
}

func (v *verdict) compare(c *count, sum int64) {
	workers := int64(max(c.object.NumWorkers, 1))
	world := int64(max(c.pass.Loader.Process.WorldSize, 1))
	differ := max(c.got-c.asked, c.asked-c.got)
	switch {
	case c.got == c.asked || sum == c.asked:
		v.right++
		return
	case v.gap != "":
		c.why = v.gap
	case c.object.DropLast:
		c.why = "drop_last drops samples: how many there were is not compared with the length"
	case world > 1 || len(v.group.Loaders) > 1:
		c.why = fmt.Sprintf("%d samples on a rank and %d on all, and a length of %d: what share of it a rank is to have is not known", c.got, sum, c.asked)
	case c.got%c.asked == 0:
		c.why = fmt.Sprintf("the samples came %d times: see shard-duplicate-workers", c.got/c.asked)
	case differ < workers:
		c.sure = finding.Note // each worker has as many as the others
		c.why = fmt.Sprintf("%d samples, and a length of %d: fewer than one for each worker differ", c.got, c.asked)
	default:
		c.sure = finding.Proven
	}
	if v.count == nil || c.sure > v.count.sure {
		v.count = c
	}
}

// samples that were delivered in a pass that came to its end.
func (v *verdict) samples(p *timeline.Pass) (n int64) {
	if p.DataLoader().Batched == "no" {
		return int64(p.Delivered)
	}
	for _, w := range p.Workers {
		if f := v.fetched[w]; f != nil {
			n += int64(f.Samples)
		}
	}
	return n
}

func (v *verdict) countFinding() finding.Finding {
	c := v.count
	f := v.group.Finding(v.Timeline, id, dp)
	f.Certainty = c.sure
	name := c.object.DatasetClass
	f.Title = fmt.Sprintf("%s gives %s samples, its len() says %s", name, words.Number(c.got), words.Number(c.asked))
	f.Evidence = []finding.Evidence{{Refs: []finding.Ref{{Part: c.pass.Loader.Process.Part.Name, Table: "pass", Seq: c.seq}},
		Text: fmt.Sprintf("Pass %d came to its end after %s with %s samples in all. The program had asked for len() of the loader, for which torch asks the dataset: %s.",
			c.pass.Number, words.Count(c.pass.Delivered, "batch"), words.Number(c.got), words.Number(c.asked))}}
	if c.got < c.asked {
		f.Cost = fmt.Sprintf("%s samples less in each pass than what is reckoned with: a schedule over len(loader) steps does not come to its end", words.Number(c.asked-c.got))
	} else {
		f.Cost = fmt.Sprintf("%s samples more in each pass than what is reckoned with: a schedule over len(loader) steps ends before the pass", words.Number(c.got-c.asked))
	}
	f.Fix = fmt.Sprintf("# in %s: as many as __iter__ gives\ndef __len__(self):\n    return %d\n# or, if that is not known before: no __len__ at all", name, c.got)
	f.NotABugIf = "the length is meant as an estimate, and nothing is reckoned from it."
	return f
}

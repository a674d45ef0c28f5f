package shardduplicateranks

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

func (v *verdict) finding(p *pair) (f finding.Finding) {
	f.Certainty, f.Facts = finding.Proven, p.doubts
	ranks, passes := v.affected(p)
	f.Title = v.title(p, ranks)
	if len(v.passes) > 1 {
		f.Title += ", in " + words.Of(len(passes), len(v.passes), "pass")
	}
	f.Cost = v.cost(p, ranks)
	reduced := "It was not seen that the gradients of these ranks are reduced together, so they may be parts of one model, or trainings " +
		"of their own."
	if v.Relation(p.a.Loader.Process, p.b.Loader.Process) == timeline.DataParallel {
		reduced = "The gradients of these ranks are reduced together (DDP, FSDP or by hand), so their samples make one batch."
	}
	f.Evidence = append(f.Evidence, finding.Evidence{Text: p.text(v.ledger.Scale()), Refs: p.refs()},
		finding.Evidence{Text: words.Upper(p.cause) + "."}, finding.Evidence{Text: reduced})
	if left := v.left(); left != "" {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: words.Upper(left) + "."})
	}
	f.Fix = v.fix(p)
	return f
}

// affected is the ranks and passes of all pairs that are as sure as this one.
func (v *verdict) affected(worst *pair) (ranks, passes []int) {
	for _, p := range v.pairs {
		if len(p.doubts) == len(worst.doubts) {
			ranks = append(ranks, p.a.Loader.Rank(), p.b.Loader.Rank())
			passes = append(passes, p.a.Number)
		}
	}
	slices.Sort(ranks)
	slices.Sort(passes)
	return slices.Compact(ranks), slices.Compact(passes)
}

func (v *verdict) title(p *pair, ranks []int) string {
	who := words.Upper(words.Ints("rank", ranks))
	switch {
	case p.crossed():
		return fmt.Sprintf("Worker %d of rank %d and worker %d of rank %d read the same samples", p.twins.A.Worker.Number, p.a.Loader.Rank(),
			p.twins.B.Worker.Number, p.b.Loader.Rank())
	case p.twins != nil && p.twins.Every():
		return who + " read the same samples"
	case p.twins != nil && p.twins.Scattered:
		return who + " read the same samples, each in an order of its own"
	case p.twins != nil:
		return fmt.Sprintf("%s read samples that are the same, %d that were looked at", who, p.twins.Equal)
	case p.inStep():
		global := v.global(p.overlap)
		return fmt.Sprintf("%s are given the same samples: of the %s of a step %d are different", who, words.Count(global, "sample"),
			effective(p.overlap, global))
	}
	return fmt.Sprintf("%s go through the same samples: %s of one rank are another's too", who, v.counted(p))
}

// counted is how many samples two ranks have in common.
func (v *verdict) counted(p *pair) string {
	scale := v.ledger.Scale()
	about := ""
	if scale > 1 {
		about = "about "
	}
	n, of := p.common.Samples, p.of
	if s := p.shared; s != nil {
		n, of = s.Samples, min(s.A, s.B)
	}
	return fmt.Sprintf("%s%s of %s", about, words.Number(int64(n*scale)), words.Number(int64(of*scale)))
}

// global is how many samples all ranks are given in one step.
func (v *verdict) global(o *samples.Overlap) (n int) {
	for _, p := range o.Ranks {
		if b := int(p.Object.BatchSize); b > 0 {
			n += b
		} else if p.Delivered > 0 {
			n += (p.Samples*v.ledger.Scale() + p.Delivered - 1) / p.Delivered
		}
	}
	return n
}

// effective is how many of them are different.
func effective(o *samples.Overlap, global int) int {
	if o.Samples == 0 {
		return global
	}
	return (global*o.Steps + o.Samples/2) / o.Samples
}

func (v *verdict) cost(p *pair, ranks []int) string {
	switch {
	case p.twins != nil && p.twins.Every() && !p.crossed():
		return fmt.Sprintf("%d ranks do the work of one: each step averages %d gradients of the same samples", len(ranks), len(ranks))
	case p.twins != nil:
		return "samples that several ranks read count several times, and take the place of others"
	case p.inStep():
		global := v.global(p.overlap)
		return fmt.Sprintf("effective distinct samples per step: %d of %d, as if there were %s", effective(p.overlap, global), global,
			words.Count(max(1, (len(p.overlap.Ranks)*effective(p.overlap, global)+global/2)/max(global, 1)), "rank"))
	case p.shared != nil && !p.shared.Alike():
		return "samples that several ranks have count several times in a pass, the others once"
	}
	return fmt.Sprintf("an epoch goes through the data %d times, once on each rank, and takes that much longer", len(ranks))
}

func (p *pair) text(scale int) string {
	a, b := p.a.Loader.Rank(), p.b.Loader.Rank()
	if t := p.twins; t != nil {
		what := map[samples.Basis]string{samples.Whole: "contents, bit by bit", samples.Chunks: "pieces of their contents",
			samples.Texts: "the texts in them", samples.Rows: "the rows of the batches that they have become, bit by bit",
			samples.Payload: "their " + t.Payload.Title()}[t.By]
		switch {
		case t.Scattered:
			return fmt.Sprintf("Pass %d: ranks %d and %d read %d samples each. Of %d that were looked at on each %d are in both, bit by bit; "+
				"%.0f are expected if both read the same, each in an order of its own.",
				p.a.Number, a, b, t.A.Samples, t.Both, t.Equal, float64(t.A.Looked())*float64(t.B.Looked())/float64(t.A.Samples))
		case p.crossed():
			return fmt.Sprintf("Pass %d: %s positions of worker %d of rank %d have the same sample as those of worker %d of rank %d (%s).",
				p.a.Number, words.Share(t.Equal, t.Both), t.A.Worker.Number, a, t.B.Worker.Number, b, what)
		case t.Anywhere:
			return fmt.Sprintf("Pass %d: %s samples of a worker of one rank are among those of the other rank's, %s.", p.a.Number,
				words.Share(t.Equal, t.Both), what)
		}
		return fmt.Sprintf("Pass %d: %s positions of worker %d have the same sample on ranks %d and %d (%s).", p.a.Number,
			words.Share(t.Equal, t.Both), t.A.Worker.Number, a, b, what)
	}
	if s := p.shared; s != nil {
		text := fmt.Sprintf("In all passes rank %d goes through %s samples, rank %d through %s, and %s are on both.", a,
			words.Number(int64(s.A*scale)), b, words.Number(int64(s.B*scale)), words.Number(int64(s.Samples*scale)))
		if s.Others > 0 {
			text += fmt.Sprintf(" Index %d of the loader's dataset, for example, is sample %d of the one inside of it on rank %d, and sample "+
				"%d on rank %d.", s.Example.Index, s.Example.A, a, s.Example.B, b)
		}
		return text
	}
	if p.list != "" {
		return fmt.Sprintf("%s has the same %s items on ranks %d and %d, in another order, and each rank goes through all of them in pass %d.",
			p.list, words.Number(int64(p.of)), a, b, p.a.Number)
	}
	c := p.common
	e := c.Example
	return fmt.Sprintf("Pass %d: %s samples of rank %d were given to rank %d as well, %d of them in the same step. Sample %d, for "+
		"example: batch %d on rank %d, batch %d on rank %d.",
		p.a.Number, words.Share(c.Samples, p.of), a, b, c.InStep, e.Index, e.BatchA, a, e.BatchB, b)
}

// refs are the loaders that were asked.
func (p *pair) refs() (refs []finding.Ref) {
	for _, pass := range []*timeline.Pass{p.a, p.b} {
		refs = append(refs, finding.Ref{Part: pass.Loader.Process.Part.Name, Table: "loader", Seq: pass.DataLoader().Seq})
	}
	return refs
}

func (p *pair) short(v *verdict) string {
	if p.twins != nil && p.twins.Scattered {
		return fmt.Sprintf("ranks %d and %d, pass %d: %d samples in both, of %d that were looked at on each", p.a.Loader.Rank(),
			p.b.Loader.Rank(), p.a.Number, p.twins.Equal, p.twins.Both)
	}
	if p.twins != nil {
		return fmt.Sprintf("ranks %d and %d, pass %d: %s samples that were compared are the same", p.a.Loader.Rank(), p.b.Loader.Rank(),
			p.a.Number, words.Share(p.twins.Equal, p.twins.Both))
	}
	return fmt.Sprintf("ranks %d and %d, pass %d: %s samples in common", p.a.Loader.Rank(), p.b.Loader.Rank(), p.a.Number, v.counted(p))
}

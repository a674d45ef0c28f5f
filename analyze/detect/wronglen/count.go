package wronglen

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
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

// tables without which a pass may have given more samples than were seen.
var tables = []string{"process", "loader", "pass", "worker", "batch_put", "batch_fetch", "batch_next"}

// counted compares what passes gave with what len() had given. It is the pass
// that shows most, and how many gave as many as len() says.
func counted(c *detect.Case) (worst *count, right int) {
	if c.Loaders.Distinct(func(l *timeline.Loader) string { return c.Gap(l, tables) }) != "" {
		return nil, 0
	}
	fetched := detect.Of(c, batches.Fetched)
	sums := map[int]int64{} // of all ranks, by number of the pass
	for _, p := range c.Passes() {
		sums[p.Number] += samples(p, fetched)
	}
	for _, p := range c.Passes() {
		o := p.DataLoader()
		if !o.Iterable || p.Ended == nil || !p.Exhausted || p.Blind {
			continue
		}
		asked := max(p.Ended.LenAsked, o.LenAsked)
		if asked <= 0 {
			continue
		}
		n := &count{pass: p, object: o, seq: p.Ended.Seq, got: samples(p, fetched), asked: asked}
		if n.got == n.asked || sums[p.Number] == n.asked {
			right++
			continue
		}
		n.compare(sums[p.Number], len(c.Loaders))
		if worst == nil || n.sure > worst.sure {
			worst = n
		}
	}
	return worst, right
}

// compare says what it means that the numbers differ.
func (n *count) compare(sum int64, ranks int) {
	differ := max(n.got-n.asked, n.asked-n.got)
	switch {
	case n.object.DropLast:
		n.why = "drop_last drops samples: how many there were is not compared with the length"
	case n.pass.Loader.Process.WorldSize > 1 || ranks > 1:
		n.why = fmt.Sprintf("%d samples on a rank and %d on all, and a length of %d: what share of it a rank is to have is not known",
			n.got, sum, n.asked)
	case n.got%n.asked == 0:
		n.why = fmt.Sprintf("the samples came %d times: see shard-duplicate-workers", n.got/n.asked)
	case differ < int64(max(n.object.NumWorkers, 1)):
		n.sure = finding.Note // each worker has as many as the others
		n.why = fmt.Sprintf("%d samples, and a length of %d: fewer than one for each worker differ", n.got, n.asked)
	default:
		n.sure = finding.Proven
	}
}

// samples that were delivered in a pass that came to its end.
func samples(p *timeline.Pass, fetched batches.ByWorker[batches.Fetches]) (n int64) {
	if p.DataLoader().Batched == "no" {
		return int64(p.Delivered)
	}
	for _, w := range p.Workers {
		n += int64(fetched.Of(w).Samples)
	}
	return n
}

// sureness that it is a bug; 0: there is none.
func (n *count) sureness() finding.Certainty {
	if n == nil {
		return 0
	}
	return n.sure
}

func (n *count) finding() finding.Finding {
	name, got, asked := n.object.DatasetClass, words.Number(n.got), words.Number(n.asked)
	const reckoned = "in each pass than what is reckoned with: a schedule over len(loader) steps"
	cost := fmt.Sprintf("%s samples less %s does not come to its end", words.Number(n.asked-n.got), reckoned)
	if n.got > n.asked {
		cost = fmt.Sprintf("%s samples more %s ends before the pass", words.Number(n.got-n.asked), reckoned)
	}
	return finding.Finding{
		Certainty: n.sure,
		Title:     fmt.Sprintf("%s gives %s samples, its len() says %s", name, got, asked),
		Evidence: []finding.Evidence{{
			Text: fmt.Sprintf("Pass %d came to its end after %s with %s samples in all. The program had asked for len() of the loader, "+
				"for which torch asks the dataset: %s.", n.pass.Number, words.Count(n.pass.Delivered, "batch"), got, asked),
			Refs: []finding.Ref{{Part: n.pass.Loader.Process.Part.Name, Table: "pass", Seq: n.seq}},
		}},
		Cost: cost,
		Fix: fmt.Sprintf("# in %s: as many as __iter__ gives\ndef __len__(self):\n    return %d\n"+
			"# or, if that is not known before: no __len__ at all", name, n.got),
		NotABugIf: "the length is meant as an estimate, and nothing is reckoned from it.",
	}
}

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
	times  int // passes that gave as many
	sure   finding.Certainty
	why    string // it is none
}

// tables without which a pass may have given more samples than were seen.
var tables = []string{"process", "loader", "pass", "worker", "batch_put", "batch_fetch", "batch_next"}

// counted compares what passes gave with what len() had given last before they
// began. It is the pass that shows most, and how many gave as many as len() says.
func counted(c *detect.Case) (worst *count, right int) {
	if c.Loaders.Distinct(func(l *timeline.Loader) string { return c.Gap(l, tables) }) != "" {
		return nil, 0
	}
	fetched := detect.Of(c, batches.Fetched)
	sums := map[int]int64{} // of all ranks, by number of the pass
	for _, p := range c.Passes() {
		sums[p.Number] += gave(p, fetched)
	}
	for _, l := range c.Loaders {
		n, r := countedOf(l, fetched, sums, len(c.Loaders))
		right += r
		if n != nil && (worst == nil || n.sure > worst.sure) {
			worst = n
		}
	}
	return worst, right
}

// countedOf one rank. A length that was right for a pass and not asked for again
// says nothing of the passes after it.
func countedOf(l *timeline.Loader, fetched batches.ByWorker[batches.Fetches], sums map[int]int64, ranks int) (worst *count, right int) {
	var was int64               // asked for as of the pass before
	held := map[int64]bool{}    // lengths that a pass was right by
	wrong := map[int64]*count{} // by length
	for _, p := range l.Passes {
		o := p.DataLoader()
		if !o.Iterable || p.Ended == nil {
			continue
		}
		asked, before := max(p.Ended.LenAsked, 0), was
		if asked == 0 {
			asked = max(o.LenAsked, 0)
		}
		was = asked
		if !p.Exhausted || p.Blind || asked == 0 {
			continue
		}
		n := &count{pass: p, object: o, seq: p.Ended.Seq, got: gave(p, fetched), asked: asked, times: 1}
		first := wrong[asked]
		switch {
		case n.got == asked || sums[p.Number] == asked || n.got == before:
			held[asked] = true
			right++
		case held[asked]: // it was right once
			right = 0
			n.why = fmt.Sprintf("%d samples in pass %d: len() was asked for before another pass, and gave %d then", n.got, p.Number, asked)
			worst = n
		case first == nil:
			wrong[asked] = n
			n.compare(sums[p.Number], ranks)
		case first.got == n.got:
			first.times++
		default:
			first.sure = 0
			first.why = fmt.Sprintf("passes of %d and of %d samples, and a length of %d that was asked for once: it may have changed since",
				first.got, n.got, asked)
		}
	}
	for _, n := range wrong {
		if worst == nil || n.sure > worst.sure || n.sure == worst.sure && n.pass.Number < worst.pass.Number {
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

// gave is how many samples were delivered in a pass that came to its end.
func gave(p *timeline.Pass, fetched batches.ByWorker[batches.Fetches]) (n int64) {
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
				"for which torch asks the dataset: %s.%s", n.pass.Number, words.Count(n.pass.Delivered, "batch"), got, asked, n.again()),
			Refs: []finding.Ref{{Part: n.pass.Loader.Process.Part.Name, Table: "pass", Seq: n.seq}},
		}},
		Cost: cost,
		Fix: fmt.Sprintf("# in %s: as many as __iter__ gives\ndef __len__(self):\n    return %d\n"+
			"# or, if that is not known before: no __len__ at all", name, n.got),
		Facts: n,
	}
}

// again says in how many passes it was so.
func (n *count) again() string {
	if n.times < 2 {
		return ""
	}
	return fmt.Sprintf(" So it was in %s.", words.Count(n.times, "pass"))
}

package samplesdropped

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// excuses are programs in which that is right. What workers drop, counted, is
// read and decoded for nothing whatever the program wants.
var excuses = []detect.Excuse{{
	Text: "nothing is expected of this loader: it has a part of the data (a client, a bucket, what is left over) " +
		"that may be smaller than a batch.",
	Excluded: func(_ *detect.Case, f *finding.Finding) bool {
		_, nothing := f.Facts.(*nothing)
		return !nothing
	},
}, {
	Text:     "a few samples less, at the end, do not matter.",
	Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Certainty > finding.Note }, // a batch and more
}}

// nothing is a loader all of whose passes came to their end without a batch.
type nothing struct {
	pass   *timeline.Pass // the first
	object *traces.Loader
	passes int
	ranks  []int
}

// lookForNothing at the passes of a loader whose batches are a sampler's; nil: it
// delivers some, or drop_last has no part in it.
func lookForNothing(c *detect.Case) *nothing {
	n := &nothing{}
	for _, l := range c.Loaders {
		ended := 0
		for _, p := range l.Passes {
			o := p.DataLoader()
			switch {
			case p.Delivered > 0 || o.Iterable || !o.DropLast || o.BatchSize <= 1 || o.Length == 0 || !samplers.PlainBatches(o):
				return nil
			case samplers.Samples(o) >= int(o.BatchSize): // it has samples enough: something else took them
				return nil
			case p.Exhausted:
				ended++
				if n.pass == nil {
					n.pass, n.object = p, o
				}
			}
		}
		if ended > 0 {
			n.ranks = append(n.ranks, l.Rank())
			n.passes = max(n.passes, ended)
		}
	}
	if n.pass == nil {
		return nil
	}
	return n
}

func (n *nothing) finding() finding.Finding {
	o, at := n.object, n.pass.Loader.At()
	size, of := int(o.BatchSize), "fewer"
	if k := samplers.Samples(o); k > 0 {
		of = fmt.Sprint(k)
	}
	each := "its one pass"
	if n.passes > 1 {
		each = fmt.Sprintf("each of its %d passes", n.passes)
	}
	f := finding.Finding{Certainty: finding.Likely, Facts: n}
	f.Title = fmt.Sprintf("The loader delivers nothing in %s: drop_last drops all it has, as a batch is %d samples", each, size)
	f.Evidence = []finding.Evidence{{
		Refs: []finding.Ref{{Part: n.pass.Loader.Process.Part.Name, Table: "loader", Seq: o.Seq}},
		Text: fmt.Sprintf("DataLoader(batch_size=%d, drop_last=True) over %s: %s samples make no batch of %d. Pass %d came to its end "+
			"without a batch.", size, o.DatasetClass, of, size, n.pass.Number),
	}}
	f.Cost = fmt.Sprintf("%s without a batch: what a loop over this loader sums up is 0, or a mean of nothing", words.Count(n.passes, "pass"))
	f.Fix = fmt.Sprintf("# %s: keep the last batch, however small\nDataLoader(..., drop_last=False)", at)
	return f
}

package splitleak

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// copying is the first evaluation with copies of what was trained on; nil: none
// that is to be told of.
func (v *verdict) copying() *evaluation {
	for _, e := range v.evals {
		if e.copies.leak() && e.leaked+e.dealt < e.samples && e.chosen == 0 {
			return e
		}
	}
	return nil
}

// copied is the finding about copies.
func (v *verdict) copied(e *evaluation) (f finding.Finding) {
	c := &e.copies
	f.Certainty, f.Facts = finding.Likely, c
	f.Loader.At = e.pass.Loader.At()
	f.Title = fmt.Sprintf("%s of %s samples that are evaluated are copies of samples that have been trained on",
		words.Number(int64(c.n)), words.Number(int64(c.looked)))
	mine, theirs := c.first[0], c.first[1]
	train := v.ledger.Passes[theirs.given.Pass]
	f.Evidence = []finding.Evidence{{
		Text: fmt.Sprintf("Sample %d, for example, contains bit for bit what sample %d does: the loader of %s was given that one in batch %d "+
			"of its pass %d%s, and this loader the other in batch %d of pass %d%s.",
			mine.origin.Index, theirs.origin.Index, train.Loader.At(), theirs.given.Batch, train.Number, onRank(train.Loader),
			mine.given.Batch, e.pass.Number, onRank(e.pass.Loader)),
		Refs: []finding.Ref{made(e.pass), made(train)},
	}}
	if c.looked < e.samples {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("Of %s samples the contents of %s were looked at.",
			words.Number(int64(e.samples)), words.Number(int64(c.looked)))})
	}
	f.Cost = fmt.Sprintf("%.0f %% of what is evaluated the model has seen: its error there says nothing about new samples",
		100*float64(c.n)/float64(c.looked))
	if c.apart {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: "Training and evaluation have a dataset object each. In neither of them " +
			"do contents come more than once, but for one of ten at most: it is the same rows that are in both."})
		f.Fix = fmt.Sprintf("# %s and %s: rows of the one are rows of the other\ntrain = [row for row in train if row not in val]",
			train.Loader.At(), e.pass.Loader.At())
		return f
	}
	f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("In the dataset of both loaders all copies lie at indices %d to %d, "+
		"and nothing else does: rows were doubled before it was split.", c.from, c.to)})
	f.Fix = fmt.Sprintf(`# for %s and %s: split first, and double rows of the part that is trained on
train, val = torch.utils.data.random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(0))
sampler = torch.utils.data.WeightedRandomSampler(weights_of(train), len(train))  # instead of copies`,
		train.Loader.At(), e.pass.Loader.At())
	return f
}

package orderrepeats

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/samplers"
)

func (s *seen) finding() finding.Finding {
	r := s.repeats[0]
	class := samplers.Class(r.First.Object)
	by := ", although " + class + " shuffles"
	if s.certainty == finding.Note {
		by = ", by " + class
	}
	return finding.Finding{
		Certainty: s.certainty,
		Title:     orders.Passes(s.repeats, s.training) + by + orders.OnRanks(s.c.Loaders, s.ranks),
		Evidence:  append(orders.Evidence(s.repeats), why(r)...),
		Cost:      orders.Cost(s.training, s.repeats),
		Fix:       fix(r),
		Facts:     s,
	}
}

// reset reports whether torch drew the same base seed for both passes.
func reset(r orders.Repeat) bool {
	return r.First.Seeded && r.Again.Seeded && r.First.BaseSeed != 0 && r.First.BaseSeed == r.Again.BaseSeed
}

// why the orders are alike.
func why(r orders.Repeat) []finding.Evidence {
	text := ""
	switch {
	case r.First.Promise == samplers.Within:
		text = fmt.Sprintf("%s draws the samples, and %s makes batches of them.", samplers.Class(r.First.Object), r.First.Object.BatchSampler)
	case reset(r) && r.Again.Object.Generator:
		text = fmt.Sprintf("From the generator given to DataLoader PyTorch drew base seed %d as each of these passes began: it was put "+
			"back to one state before each.",
			r.First.BaseSeed)
	case reset(r):
		text = fmt.Sprintf("From its own generator PyTorch drew base seed %d as each of these passes began: torch was seeded anew before "+
			"each.",
			r.First.BaseSeed)
	case r.First.Epoch >= 0 && r.First.Epoch == r.Again.Epoch:
		text = fmt.Sprintf("The sampler's epoch was %d in both, and another one in other passes.", r.First.Epoch)
	default:
		return nil
	}
	return []finding.Evidence{{Text: text, Refs: []finding.Ref{r.First.Row(), r.Again.Row()}}}
}

func fix(r orders.Repeat) string {
	o, at := r.First.Object, r.First.Loader.At()
	switch {
	case r.First.Promise == samplers.Own:
		return fmt.Sprintf("# %s: if %s is to shuffle, draw a new order in each call of its __iter__", at, samplers.Class(o))
	case r.First.Epoch >= 0:
		return fmt.Sprintf(`# %s: a new epoch, on every rank, before each pass
for epoch in range(first_epoch, epochs):
    %s.set_epoch(epoch)`, at, samplers.Path(o))
	case o.Generator && o != r.Again.Object:
		return fmt.Sprintf(`# %s: this DataLoader is made anew for each epoch: its generator needs the epoch in its seed
generator = torch.Generator().manual_seed(SEED + epoch)`, at)
	case o.Generator:
		return fmt.Sprintf(`# %s: seed the loader's generator once, before the first epoch,
# or, so that each epoch can be repeated by itself, from the epoch as well
for epoch in range(epochs):
    loader.generator.manual_seed(SEED + epoch)
    for batch in loader:
        ...`, at)
	case reset(r):
		return fmt.Sprintf(`# %s: seed torch once, before the first epoch,
# or, so that each epoch can be repeated by itself, from the epoch as well
for epoch in range(epochs):
    torch.manual_seed(SEED + epoch)
    for batch in loader:
        ...`, at)
	}
	return fmt.Sprintf("# %s: seed the generator of %s (%s.generator) once, before the first epoch, not before each",
		at, samplers.Class(o), samplers.Path(o))
}

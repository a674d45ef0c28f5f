package orderrepeats

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/orders"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// stream is an IterableDataset whose code shuffles: what came in which order is
// known by what its samples contain.
type stream struct {
	c        *detect.Case
	training []*timeline.Pass // of one rank: the one with the most repeats
	again    []again
	compared int // pairs of passes, on all ranks
	ranks    []int
}

// again is a pass in the order of an earlier one.
type again struct {
	first, pass *timeline.Pass
	samples     int // that were compared, place by place
}

// shown is how many pairs of passes are named at most.
const shown = 8

// streamOf a loader; nil: it is none whose code shuffles, or it does not train.
func streamOf(c *detect.Case) *stream {
	if !slices.ContainsFunc(c.Loaders, func(l *timeline.Loader) bool { return l.Iterable() && l.First().Shuffle == "yes" }) ||
		c.Loaders.Role() == timeline.Eval {
		return nil
	}
	s := &stream{c: c}
	for _, l := range c.Loaders {
		for _, training := range trainings(l) {
			s.look(l, training)
		}
	}
	return s
}

// trainings are the passes of a loader that train, by training.
func trainings(l *timeline.Loader) (all [][]*timeline.Pass) {
	for _, p := range l.Passes {
		if p.Role != timeline.Train || p.Abandoned || !p.Exhausted || p.Began == nil {
			continue
		}
		i := slices.IndexFunc(all, func(training []*timeline.Pass) bool { return slices.ContainsFunc(training, p.SameTraining) })
		if i < 0 {
			all = append(all, []*timeline.Pass{p})
		} else {
			all[i] = append(all[i], p)
		}
	}
	return all
}

// look at the passes of one training.
func (s *stream) look(l *timeline.Loader, training []*timeline.Pass) {
	var found []again
	for i, q := range training {
		for _, p := range training[:i] {
			n, same, ok := s.compare(p, q)
			if ok {
				s.compared++
			}
			if same {
				found = append(found, again{p, q, n})
				break
			}
		}
	}
	if len(found) > 0 {
		s.ranks = append(s.ranks, l.Rank())
	}
	if len(found) > len(s.again) {
		s.training, s.again = training, found
	}
}

// compare the order of two passes, worker by worker. ok: enough was looked at.
func (s *stream) compare(p, q *timeline.Pass) (n int, same, ok bool) {
	j := detect.Of(s.c, samples.Source)
	equal, different := 0, 0
	for _, w := range p.Workers {
		i := slices.IndexFunc(q.Workers, func(v *timeline.WorkerPass) bool { return v.Number == w.Number })
		if i < 0 {
			continue
		}
		both, alike, apart := samples.InOrder(j.Read(w), j.Read(q.Workers[i]))
		n, equal, different = n+both, equal+alike, different+apart
	}
	same = equal == n && different >= batches.Enough
	if same || n < batches.Enough {
		return n, same, same
	}
	in := samples.Scattered(j.Together(p), j.Together(q)) // else they may be augmented, and in one order
	return n, false, in.Shared >= batches.Enough
}

func (s *stream) verdict() detect.Verdict {
	switch {
	case len(s.again) > 0:
		return detect.Found(fmt.Sprintf("%d of %d passes in the order of an earlier one", len(s.again), len(s.training)), s.finding())
	case s.compared == 0:
		return detect.CannotTell("a stream that shuffles: no two passes of one training with the same samples in them (they may be augmented)")
	}
	return detect.Clean(fmt.Sprintf("%s of a stream that shuffles were compared: in different orders", words.Count(s.compared, "pair")))
}

func (s *stream) finding() finding.Finding {
	one := s.again[0]
	class := samplers.Short(one.pass.DataLoader().DatasetClass)
	verb := "go"
	if len(s.again) == 1 {
		verb = "goes"
	}
	part := one.pass.Loader.Process.Part.Name
	f := finding.Finding{Certainty: finding.Likely, Facts: s}
	f.Title = fmt.Sprintf("%d of %d passes %s through the stream in the order of an earlier one, although the code of %s names a shuffle%s",
		len(s.again), len(s.training), verb, class, orders.OnRanks(s.c.Loaders, s.ranks))
	for _, a := range s.again[:min(len(s.again), shown)] {
		f.Evidence = append(f.Evidence, finding.Evidence{
			Text: fmt.Sprintf("Passes %d and %d: %s samples were compared, place by place in each worker, and were the same bit for bit.",
				a.first.Number, a.pass.Number, words.Number(int64(a.samples))),
			Refs: []finding.Ref{{Part: part, Table: "pass", Seq: a.first.Began.Seq}, {Part: part, Table: "pass", Seq: a.pass.Began.Seq}},
		})
	}
	f.Cost = fmt.Sprintf("%d epochs with the variety of %d: the same samples, one after another",
		len(s.training), len(s.training)-len(s.again))
	f.Fix = fmt.Sprintf(`# %s: %s needs the epoch in the seed of its shuffle (workers that persist do not see it)
for epoch in range(epochs):
    loader.dataset.epoch = epoch  # and in __iter__: random.Random(SEED + self.epoch).shuffle(...)
    for batch in loader:
        ...`, one.pass.Loader.At(), class)
	return f
}

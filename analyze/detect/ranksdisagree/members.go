package ranksdisagree

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// members compares what the ranks' Subsets have of the dataset inside of them:
// which sample an index is. That takes no contents, so they may be augmented.
func (v *verdict) members() []cause {
	if v.ranks[0].First().DatasetID != 0 { // no Subset
		return nil
	}
	compared, agree := map[*timeline.Loader]bool{}, true
	var found *samples.Shared
	for _, s := range v.ledger.Members(v.Loaders).Shared {
		if v.ledger.Sure(s.PassA, s.PassB) == samples.Unknown {
			agree = false
			continue
		}
		agree = agree && s.Others+s.Foreign == 0
		if s.Places >= enough {
			compared[s.PassB.Loader] = true
		}
		switch expected, _ := s.ByChance(); {
		case s.Others < enough, s.Anew && len(s.PassA.Loader.Passes) != len(s.PassB.Loader.Passes): // of other epochs, maybe
		case s.Moved < enough || 2*float64(s.Samples) < expected:
			v.apart = true
		case found == nil:
			found = s
		}
	}
	if found != nil {
		return []cause{v.split(found)}
	}
	v.listed = v.listed || agree && len(compared) == len(v.ranks)-1
	return nil
}

func (v *verdict) split(s *samples.Shared) cause {
	c := v.cause()
	if v.ledger.Sure(s.PassA, s.PassB) != samples.Same || s.Anew {
		c.add(ownData)
	}
	a, b, x := s.PassA.Loader, s.PassB.Loader, s.Example
	scale := int64(v.ledger.Scale())
	c.fix = oneSplit
	c.title = fmt.Sprintf("The ranks go through different lists of one dataset: index %d is sample %d of it on rank %d, and sample %d on "+
		"rank %d", x.Index, x.A, a.Rank(), x.B, b.Rank())
	c.cost = fmt.Sprintf("the shares of the ranks do not fit together: %s samples of one rank are another's too, others are on none, and "+
		"what one rank holds back for validation another may train on", words.Number(int64(s.Samples)*scale))
	c.evidence = []finding.Evidence{{Refs: v.refs(), Text: fmt.Sprintf("Of %d indices that were asked for on ranks %d and %d, %d are "+
		"another sample of the dataset inside. In all passes rank %d takes %s different samples, rank %d %s, and %s are on both.",
		s.Places, a.Rank(), b.Rank(), s.Others, a.Rank(), words.Number(int64(s.A)*scale), b.Rank(), words.Number(int64(s.B)*scale),
		words.Number(int64(s.Samples)*scale))}}
	return c
}

// oneSplit is the fix where a Subset is another one on each rank.
const oneSplit = "# one split on all ranks: a generator of its own, with one seed (random_split draws from torch's, " +
	"which seed + rank sets apart)\n" +
	"train, val = torch.utils.data.random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(0))"

package shardduplicateranks

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// members is what the ranks take of their datasets.
func (v *verdict) members() *samples.Members {
	if v.taken == nil {
		v.taken = v.ledger.Members(v.ranks)
	}
	return v.taken
}

// lists reports whether two ranks go through different lists of one dataset: each
// has a Subset of its own, say. It is nil where these two were not compared, and
// others that go through different lists were.
func (v *verdict) lists(a, b *samples.Pass) (shared *samples.Shared, differ bool) {
	if a.Object.DatasetID != 0 || b.Object.DatasetID != 0 {
		return nil, false
	}
	if s := v.members().Between(a, b); s != nil {
		return s, s.Differ()
	}
	for _, s := range v.members().Shared {
		differ = differ || s.Differ()
	}
	return nil, differ
}

// part reports whether two ranks have a part in common of what each goes through,
// in orders of their own, although each came to the end: the indices were chosen
// before they were shuffled, or are a part that is drawn anew in each pass.
func (v *verdict) part(p *pair, a, b *samples.Pass) bool {
	if samplers.SharingOf(a.Object) != samplers.EachItsOwn || samplers.SharingOf(b.Object) != samplers.EachItsOwn || p.inStep() {
		return false
	}
	s := v.members().Between(a, b)
	return s != nil && !s.Alike() && p.a.Exhausted && p.b.Exhausted && !v.almost(p, s)
}

// almost reports whether two ranks go through the same samples in each pass, but for
// what drop_last dropped.
func (v *verdict) almost(p *pair, s *samples.Shared) bool {
	dropped := max(int(p.a.DataLoader().BatchSize), int(p.b.DataLoader().BatchSize), 1) / v.ledger.Scale()
	return s.Still && s.Samples+2*dropped >= max(s.A, s.B)
}

// unlike judges two ranks that go through lists of their own.
//
// Parts of one dataset that each rank has drawn by itself have as many samples
// in common as chance makes it. What is given to several ranks on purpose (rare
// classes, windows that overlap) is another number.
func (v *verdict) unlike(p *pair, s *samples.Shared, relation timeline.Relation, same samples.Sameness) {
	if s == nil || s.Samples*v.ledger.Scale() <= len(p.overlap.Ranks)*max(int(p.a.DataLoader().BatchSize), 1) {
		return
	}
	p.shared = s
	o := p.a.DataLoader()
	name := samplers.Name(o)
	switch contract := samplers.SharingOf(o); {
	case contract != samplers.SharingOf(p.b.DataLoader()), contract == samplers.Custom, contract == samplers.Replacing,
		contract == samplers.Repeating:
		if why := promise(p, o, p.b.DataLoader()); why != "" {
			v.excuses[why] = true
		}
		return
	case contract == samplers.Distributed:
		v.excuses["the ranks go through different lists of one dataset, and have samples in common: ranks-disagree"] = true
		return
	case s.Alike() && s.Still && p.a.Exhausted && p.b.Exhausted:
		p.cause = name + " knows of no ranks: each of them goes through the same samples, in a list of its own"
		v.grade(p, relation, same)
	case v.drawn(s):
		expected, _ := s.ByChance()
		p.cause = fmt.Sprintf("each rank has drawn its own part of the dataset: of two such parts %.0f samples are expected to be in both, "+
			"and %d are", expected, s.Samples)
		if relation != timeline.DataParallel {
			v.excuses["ranks have a part of their samples in common, and it was not seen that their gradients are reduced together"] = true
			return
		}
		p.doubts = append(p.doubts, ownPart)
		v.grade(p, relation, same)
	default:
		v.excuses["ranks have a part of their samples in common, not as many as chance makes it, or others in each pass: whether that is "+
			"meant is not known"] = true
	}
}

// drawn reports whether the ranks have drawn their parts once, each by itself, and
// large enough for all there is to be in them. Parts that are drawn anew in each
// pass are as good as draws with replacement.
func (v *verdict) drawn(s *samples.Shared) bool {
	_, chance := s.ByChance()
	if !chance || !s.Still || s.Anew || !s.Differ() && samplers.Name(s.PassA.Object) != "SubsetRandomSampler" {
		return false
	}
	return 10*len(v.ranks)*min(s.A, s.B) >= 9*s.Length
}

// reordered reports whether two ranks go through all of their datasets, and these
// are read from lists with the same items in another order: then it is the same
// samples, whatever their indices are.
func (v *verdict) reordered(p *pair) bool {
	if p.common == nil || samplers.SharingOf(p.a.DataLoader()) != samplers.EachItsOwn || !p.a.Exhausted || !p.b.Exhausted ||
		v.ledger.Scale() > 1 {
		return false
	}
	theirs := v.ledger.Lists(p.b.Loader)
	for _, x := range v.ledger.Lists(p.a.Loader) {
		if x.Items == int64(p.of) && slices.ContainsFunc(theirs, func(y traces.Attribute) bool { return shuffled(&x, &y) }) {
			p.list = x.Path
			return true
		}
	}
	return false
}

// shuffled reports whether two lists have the same items in another order.
func shuffled(x, y *traces.Attribute) bool {
	return x.Path == y.Path && x.Class == y.Class && x.Whole && y.Whole && x.Items == y.Items &&
		len(x.Unordered) > 0 && bytes.Equal(x.Unordered, y.Unordered) && !bytes.Equal(x.Ordered, y.Ordered)
}

package samples

import "github.com/dptrace/dptrace/analyze/evidence/digests"

// InOrder compares two reads place by place: how many of them were looked at in
// both, whole, at how many the same sample came, and how many different ones.
func InOrder(a, b *Read) (both, equal, different int) {
	if a == nil || b == nil {
		return 0, 0, 0
	}
	theirs := map[uint32]digests.Sum{}
	for i := range b.digests {
		if k, ok := b.digests[i].key(Whole); ok {
			theirs[b.digests[i].position] = k
		}
	}
	same := map[digests.Sum]bool{}
	for i := range a.digests {
		k, ok := a.digests[i].key(Whole)
		q, there := theirs[a.digests[i].position]
		if !ok || !there {
			continue
		}
		both++
		if k == q {
			equal++
			same[k] = true
		}
	}
	return both, equal, len(same)
}

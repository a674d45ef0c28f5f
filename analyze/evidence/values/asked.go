package values

import (
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// Asked is the indices that one pass asked for.
type Asked struct {
	Samples int
	Max     int64
	Odd     bool // keys that are no integers are among them

	kept   []int64 // those whose hash is low
	halved uint
}

const (
	keptIndices = 1 << 14 // of a pass: 128 KB
	keptPasses  = 4       // of each DataLoader object with a distributed sampler
)

func (p *part) put(r *traces.BatchPut) {
	k := passKey{r.Proc, r.Loader, r.Pass}
	a := p.asked[k]
	if a == nil {
		a = &Asked{Max: -1}
		p.asked[k] = a
	}
	if len(r.Indices) == 0 {
		a.Odd = a.Odd || r.Keys != ""
		return
	}
	a.Samples += len(r.Indices)
	keep := r.Pass < keptPasses && !p.plain[loaderKey{r.Proc, r.Loader}]
	for _, i := range r.Indices {
		a.Max = max(a.Max, i)
		a.Odd = a.Odd || i < 0
		if keep && low(i, a.halved) {
			a.kept = append(a.kept, i)
		}
	}
	for len(a.kept) > keptIndices && a.halved < 63 {
		a.thin(a.halved + 1)
	}
}

func (a *Asked) thin(halved uint) {
	a.halved = halved
	a.kept = slices.DeleteFunc(a.kept, func(i int64) bool { return !low(i, halved) })
}

// forget the indices of a loader that has no distributed sampler.
func (p *part) forget(l loaderKey) {
	for k, a := range p.asked {
		if k.proc == l.proc && k.loader == l.loader {
			a.kept = nil
		}
	}
}

// Coverage is how often ranks together asked for each index below a length.
type Coverage struct {
	Length int64
	Never  int // indices that no rank asked for
	Often  int // times that one was asked for again
	Of     int // 1: all indices were looked at; n: one of n
}

// Cover counts the indices that the passes of some ranks asked for.
func Cover(length int64, ranks []*Asked) Coverage {
	c := Coverage{Length: length, Of: 1}
	var halved uint
	for _, a := range ranks {
		halved = max(halved, a.halved)
	}
	c.Of <<= halved
	seen := map[int64]bool{}
	for _, a := range ranks {
		for _, i := range a.kept {
			switch {
			case i >= length || !low(i, halved):
			case seen[i]:
				c.Often++
			default:
				seen[i] = true
			}
		}
	}
	all := 0
	for i := range length {
		if low(i, halved) {
			all++
		}
	}
	c.Never = all - len(seen)
	return c
}

// Kept reports whether the indices are known that Cover counts.
func (a *Asked) Kept() bool { return len(a.kept) > 0 }

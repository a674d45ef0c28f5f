package values

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Sample is one sample that a map-style dataset gave, by its digests.
type Sample struct {
	Index         int64
	Content, Meta [16]byte
	Kind          byte
	Seq           uint64 // of its row in digest
}

// Bits of Digest.Kinds.
const (
	whole   = 1
	chunks  = 2
	empty   = 4
	left    = 32
	follows = 64
)

// Tells reports whether the digest stands for the sample: there is something in
// it, and all of that could be read.
func (s *Sample) Tells() bool { return s.Kind&(empty|left) == 0 && s.Kind&(whole|chunks) != 0 }

// Empty reports whether nothing is in it: None, or zeros.
func (s *Sample) Empty() bool { return s.Kind&empty != 0 }

// Whole reports whether all of its content was read.
func (s *Sample) Whole() bool { return s.Tells() && s.Kind&whole != 0 }

// Follows reports whether it is a window of a series: the one of the index before
// it, some steps on.
func (s *Sample) Follows() bool { return s.Kind&follows != 0 }

// Labelled reports whether it has strings or integers.
func (s *Sample) Labelled() bool { return s.Meta != [16]byte{} }

// Same reports whether two samples are alike bit for bit, as far as they were
// read; ok is false where that was not done in the same way.
func (s *Sample) Same(o *Sample) (same, ok bool) {
	if !s.Tells() || !o.Tells() || s.Kind&(whole|chunks) != o.Kind&(whole|chunks) {
		return false, false
	}
	return s.Content == o.Content, true
}

// most is how many samples are kept: 15 MB. Beyond that only indices are kept
// whose hash is low: the same ones on all ranks and in all passes, so that what
// is left can still be compared.
const most = 1 << 18

func (c *Contents) digest(p *part, r *traces.Digest) {
	n := len(r.Indices)
	if n == 0 || len(r.Kinds) < n || len(r.Contents) < 16*n || len(r.Metas) < 16*n {
		return
	}
	k := streamKey{passKey{r.Proc, r.Loader, r.Pass}, r.Worker}
	for i, index := range r.Indices {
		if !low(index, c.halved) {
			continue
		}
		p.streams[k] = append(p.streams[k], Sample{Index: index, Content: [16]byte(r.Contents[16*i:]), Meta: [16]byte(r.Metas[16*i:]), Kind: r.Kinds[i], Seq: r.Seq})
		c.held++
	}
}

// bound keeps no more than most.
func (c *Contents) bound() {
	for c.held > most && c.halved < 63 {
		c.halved++
		c.held = 0
		for _, p := range c.parts {
			c.held += p.thin(c.halved)
		}
	}
}

// thin keeps the samples whose hash is low, and counts them.
func (p *part) thin(halved uint) (held int) {
	for k, list := range p.streams {
		p.streams[k] = slices.DeleteFunc(list, func(s Sample) bool { return !low(s.Index, halved) })
		held += len(p.streams[k])
	}
	return held
}

func low(index int64, halved uint) bool { return halved == 0 || mix(uint64(index))>>(64-halved) == 0 }

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Samples are those of which a pass has digests, in the order of the trace.
func (c *Contents) Samples(t *timeline.Timeline, pass *timeline.Pass) []Sample {
	if c.built != t {
		c.built, c.passes = t, map[*timeline.Pass][]Sample{}
		for of, p := range c.parts {
			for k, list := range p.streams {
				if w := t.Worker(of, k.proc, k.loader, k.pass, k.worker); w != nil {
					c.passes[w.Pass] = append(c.passes[w.Pass], list...)
				}
			}
		}
		for _, list := range c.passes {
			slices.SortFunc(list, func(a, b Sample) int {
				return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Index, b.Index), bytes.Compare(a.Content[:], b.Content[:]))
			})
		}
	}
	return c.passes[pass]
}

// Pair is samples of one index, of two passes.
type Pair struct{ First, Again *Sample }

// CompareByIndex compares the samples of passes index by index: which came twice with
// the same content, which with another.
func CompareByIndex(passes ...[]Sample) (same, other []Pair) {
	seen := map[int64][]*Sample{} // by how they were read
	for _, list := range passes {
		var now []*Sample
		for i := range list {
			s := &list[i]
			for _, first := range seen[s.Index] {
				if alike, ok := first.Same(s); ok && alike {
					same = append(same, Pair{first, s})
				} else if ok {
					other = append(other, Pair{first, s})
				}
			}
			now = append(now, s)
		}
		for _, s := range now {
			if !slices.ContainsFunc(seen[s.Index], func(first *Sample) bool { _, ok := first.Same(s); return ok }) {
				seen[s.Index] = append(seen[s.Index], s)
			}
		}
	}
	return same, other
}

package values

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Sample is one sample that a map-style dataset gave, by its digests.
type Sample struct {
	digests.Sample
	Seq uint64 // of its row in digest
}

// stream is a worker's share of a pass, as the worker counts.
type stream struct {
	process
	loader, pass uint32
	worker       int32
}

// digest is a sample that is kept.
type digest struct {
	Sample
	stream *stream
}

// mostDigests are kept: 19 MB. Beyond that those of some indices are left out,
// the same ones on all ranks and in all passes: see bounded.
const mostDigests = 1 << 18

// number decides whether a digest is kept.
func (d *digest) number() uint64 { return uint64(d.Index) }

// digest takes a row.
func (c *collector) digest(p process, r *traces.Digest) {
	if len(r.Indices) == 0 { // of an IterableDataset
		return
	}
	k := stream{p, r.Loader, r.Pass, r.Worker}
	s := c.streams[k]
	if s == nil {
		s = &k
		c.streams[k] = s
	}
	for one := range digests.Of(r) {
		if c.digests.Takes(uint64(one.Index)) {
			c.digests.Add(digest{Sample{one, r.Seq}, s})
		}
	}
}

// byPass sorts digests by the pass that their worker was in, and those of one
// pass in the order of the trace.
func byPass(t *timeline.Timeline, kept []digest) map[*timeline.Pass][]Sample {
	workers := map[*stream]*timeline.WorkerPass{}
	passes := map[*timeline.Pass][]Sample{}
	for i := range kept {
		s := kept[i].stream
		w, looked := workers[s]
		if !looked {
			w = t.Worker(s.part, s.proc, s.loader, s.pass, s.worker)
			workers[s] = w
		}
		if w != nil {
			passes[w.Pass] = append(passes[w.Pass], kept[i].Sample)
		}
	}
	for _, list := range passes {
		slices.SortFunc(list, func(a, b Sample) int {
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Index, b.Index), bytes.Compare(a.Content[:], b.Content[:]))
		})
	}
	return passes
}

// Samples are those of which a pass has digests, in the order of the trace.
func (c *Contents) Samples(pass *timeline.Pass) []Sample { return c.samples[pass] }

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
				if alike, ok := first.Same(&s.Digest); ok && alike {
					same = append(same, Pair{first, s})
				} else if ok {
					other = append(other, Pair{first, s})
				}
			}
			now = append(now, s)
		}
		for _, s := range now {
			if !slices.ContainsFunc(seen[s.Index], func(first *Sample) bool { _, ok := first.Same(&s.Digest); return ok }) {
				seen[s.Index] = append(seen[s.Index], s)
			}
		}
	}
	return same, other
}

package samples

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/traces"
)

// plain is an entry or a digest whose stream is told in full.
type plain struct {
	stream  stream
	id      uint64
	index   int64
	batch   uint32
	content digests.Sum
}

func plainOf(l *Ledger) (all []plain) {
	for _, e := range l.entries.All() {
		all = append(all, plain{l.streams[e.stream], e.id, int64(e.index), e.batch, digests.Sum{}})
	}
	for _, d := range l.digests.All() {
		all = append(all, plain{l.streams[d.stream], 0, d.index, d.batch, d.Content})
	}
	slices.SortFunc(all, func(a, b plain) int {
		return cmp.Or(cmp.Compare(a.stream.part.Name, b.stream.part.Name), cmp.Compare(a.stream.worker, b.stream.worker), cmp.Compare(a.batch, b.batch),
			cmp.Compare(a.id, b.id), cmp.Compare(a.index, b.index), bytes.Compare(a.content[:], b.content[:]))
	})
	return all
}

// TestMerge: what is kept depends neither on which accumulators took which
// parts, nor on the order and the grouping in which these were merged, nor on
// how much each of them had to leave out; nor on whether one took them all at
// the same time.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, limit := range []int{100, 777, 5000, 1 << 20} {
		var parts []*traces.Part
		rows := map[*traces.Part][]traces.Batch{}
		for range 9 {
			part := &traces.Part{Name: string(rune('a' + len(parts)))}
			parts = append(parts, part)
			for batch := range uint32(1 + r.IntN(40)) {
				put, digest := traces.BatchPut{Loader: 1, Batch: batch}, traces.Digest{Batch: batch}
				for i := range int64(1 + r.IntN(60)) {
					put.Indices = append(put.Indices, r.Int64N(3000))
					digest.Positions, digest.Kinds = append(digest.Positions, int64(batch)*100+i), append(digest.Kinds, 1)
					digest.Contents, digest.Metas = append(digest.Contents, make([]byte, 16)...), append(digest.Metas, make([]byte, 16)...)
				}
				rows[part] = append(rows[part], traces.Batch{Part: part, Rows: []traces.BatchPut{put}}, traces.Batch{Part: part, Rows: []traces.Digest{digest}})
			}
		}
		once := newLedger(limit, limit)
		for _, part := range parts {
			for _, b := range rows[part] {
				once.Add(b)
			}
		}
		want := plainOf(once)
		if len(once.entries.All()) > limit || (limit == 1<<20) != (once.entries.Halved() == 0) {
			t.Fatalf("limit %d: %d entries, k = %d", limit, len(once.entries.All()), once.entries.Halved())
		}
		shared := newLedger(limit, limit)
		var wg sync.WaitGroup
		for _, part := range parts {
			wg.Go(func() {
				for _, b := range rows[part] {
					shared.Add(b)
				}
			})
		}
		if wg.Wait(); shared.entries.Halved() != once.entries.Halved() || !slices.Equal(plainOf(shared), want) {
			t.Fatalf("limit %d, side by side: %d rows and k = %d; want %d and %d", limit, len(plainOf(shared)), shared.entries.Halved(), len(want), once.entries.Halved())
		}
		for range 20 {
			var ledgers []*Ledger
			for range 1 + r.IntN(5) {
				ledgers = append(ledgers, newLedger(limit, limit))
			}
			for _, n := range r.Perm(len(parts)) {
				l := ledgers[r.IntN(len(ledgers))]
				for _, b := range rows[parts[n]] {
					l.Add(b)
				}
			}
			for len(ledgers) > 1 {
				i := r.IntN(len(ledgers) - 1)
				if r.IntN(2) == 0 {
					ledgers[i], ledgers[i+1] = ledgers[i+1], ledgers[i]
				}
				ledgers[i].Merge(ledgers[i+1])
				ledgers = slices.Delete(ledgers, i+1, i+2)
			}
			if l := ledgers[0]; l.entries.Halved() != once.entries.Halved() || l.digests.Halved() != once.digests.Halved() || !slices.Equal(plainOf(l), want) {
				t.Fatalf("limit %d: %d rows and k = %d, %d; want %d and %d, %d", limit, len(plainOf(l)), l.entries.Halved(), l.digests.Halved(), len(want), once.entries.Halved(), once.digests.Halved())
			}
		}
	}
}

package fdexhausted

import (
	"testing"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// TestDeliveries: however many there are, some are kept, and say about how many there
// had been by a time; exactly so of the end.
func TestDeliveries(t *testing.T) {
	const ms, batches = 1_000_000, 1_000_000
	p := &timeline.Process{}
	p.Proc = 7
	d := &deliveries{spacing: spacing}
	for i := range int64(batches) {
		d.add((i + 1) * 30 * ms)
	}
	c := &counts{delivered: map[process]*deliveries{{p.Part, 7}: d}}
	if len(d.all) > mostDeliveries {
		t.Errorf("%d are kept", len(d.all))
	}
	for _, at := range []int64{1, 1000, 500_000, 999_999, batches} {
		got := int64(c.batches(p, at*30*ms))
		if off := at - got; off < 0 || off > batches/(mostDeliveries/4) || at == batches && off != 0 {
			t.Errorf("%d batches by the time of batch %d", got, at)
		}
	}
}

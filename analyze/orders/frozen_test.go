package orders

import (
	"testing"

	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// TestFrozen: the epoch stays as it is if no other one is known of, in any pass.
func TestFrozen(t *testing.T) {
	at := func(epoch int64) *timeline.Pass {
		return &timeline.Pass{Abandoned: true, Began: &traces.Pass{SamplerEpoch: epoch}}
	}
	two := func(a, b int64) []*Pass { return []*Pass{{Epoch: a}, {Epoch: b}} }
	for _, c := range []struct {
		name     string
		training []*Pass
		beside   *timeline.Pass // that is not compared
		want     bool
	}{
		{"two passes", two(0, 0), at(0), true},
		{"of another epoch", two(0, 1), at(0), false},
		{"without an epoch", two(-1, -1), at(-1), false},
		{"one pass", two(0, 0)[:1], at(0), false},
		{"another epoch in a pass that broke off", two(0, 0), at(1), false},
		{"the begin of a pass is lost", two(0, 0), &timeline.Pass{Abandoned: true}, false},
	} {
		o := loader(&timeline.Loader{Passes: []*timeline.Pass{c.beside}}, batches.ByPass[batches.Requests]{})
		if got := o.Frozen(c.training); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

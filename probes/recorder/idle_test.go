package recorder

import (
	"strings"
	"testing"
	"time"

	"github.com/dptrace/dptrace/traces"
)

// While nothing happens the recorder sleeps: it looks for new processes ten times
// a second at first, then all that it looks at has two moments in a second. A busy
// machine makes these fewer, never more.
func TestIdleWakes(t *testing.T) {
	tiers := []string{TierHook}
	if need, _ := unmet(); need == "" {
		tiers = append(tiers, TierKernel)
	}
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			var stderr strings.Builder
			dir := t.TempDir() + "/t.dptrace"
			began := time.Now()
			if _, err := Run(Options{Command: []string{"sleep", "10"}, Output: dir, Tier: tier, Stderr: &stderr, Quiet: true}); err != nil {
				t.Fatal(err, stderr.String())
			}
			took := time.Since(began)
			run, err := traces.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			var wakes uint64
			for _, row := range traces.Rows[traces.Overhead](run) {
				if row.Probe == "" {
					wakes = max(wakes, row.Calls)
				}
			}
			const young = 5 * time.Second // as package poll has it
			// Besides: rows that wait to be written, the target's exec and end, and in the
			// kernel tier the time that is taken of the programs.
			most := uint64(young/(100*time.Millisecond)) + uint64((took-young+time.Second)/(time.Second/2)) + 20
			if t.Logf("%d in %v", wakes, took.Round(time.Millisecond)); wakes == 0 || wakes > most {
				t.Errorf("it woke up %d times in %v, at most %d have a reason", wakes, took, most)
			}
		})
	}
}

package recorder

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/probes"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// With a probe that is late: what the trace of a run says if it starts, is refused, or starts
// when a process has already imported torch.
func TestLate(t *testing.T) {
	for name, tc := range map[string]struct {
		start   func(r *probe.Recording) error
		tier    string
		refused string // what the trace's tier_refused has
		lost    string
		fails   int // exit code of record
	}{
		"in time": {start: func(*probe.Recording) error { return nil }},
		"refused": {start: func(*probe.Recording) error { return errors.New("no room for tardy ones") }, refused: "without tardy: "},
		"refused where it was demanded": {start: func(*probe.Recording) error { return errors.New("no room") },
			tier: TierKernel, fails: ExitRefused},
		"later than torch": {start: func(r *probe.Recording) error {
			return os.WriteFile(filepath.Join(r.Spool, "1.1.ring"), nil, 0o600)
		}, lost: "torch was imported before the tardy probe had started"},
		"demanded": {start: func(*probe.Recording) error { return nil }, tier: TierKernel},
	} {
		t.Run(name, func(t *testing.T) {
			ran := filepath.Join(t.TempDir(), "ran")
			early := false
			tardy := probe.Probe{Name: "tardy", Tier: probe.Kernel, Late: true, Start: func(r *probe.Recording) (probe.Watch, error) {
				_, err := os.Stat(ran)
				early = err != nil
				return probe.Watch{}, tc.start(r)
			}}
			all := probes.List
			// The hook's probe is there: a recording has one, and no other is needed.
			probes.List = []*probe.Probe{all[0], {Name: "kernel", Tier: probe.Kernel, Start: func(*probe.Recording) (probe.Watch, error) {
				return probe.Watch{}, nil
			}}, &tardy}
			defer func() { probes.List = all }()
			var stderr strings.Builder
			dir := filepath.Join(t.TempDir(), "t.dptrace")
			tier := tc.tier
			if tier == "" {
				tier = TierAuto
			}
			_, err := Run(Options{Command: []string{"sh", "-c", "touch " + ran + "; sleep 0.5"}, Output: dir, Tier: tier, Stderr: &stderr, Quiet: true})
			if code, _ := AsFailure(err); err != nil && code != tc.fails || err == nil && tc.fails != 0 {
				t.Fatalf("%v, %s", err, stderr.String())
			}
			if tc.tier == TierKernel && !early {
				t.Error("the target ran before a probe of the tier that was demanded had started")
			}
			if tc.fails != 0 {
				if _, err := os.Stat(ran); err == nil {
					t.Error("the target ran")
				}
				return
			}
			meta := metaOf(t, dir)
			if meta["tier"] != TierKernel || !strings.Contains(meta["tier_refused"], tc.refused) || tc.refused == "" && meta["tier_refused"] != "" {
				t.Errorf("tier %q, refused %q, want %q", meta["tier"], meta["tier_refused"], tc.refused)
			}
			run, err := traces.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			var lost []string
			for _, row := range traces.Rows[traces.Lost](run) {
				lost = append(lost, row.Reason)
			}
			if slices.Contains(lost, tc.lost) != (tc.lost != "") {
				t.Errorf("lost: %q, want %q", lost, tc.lost)
			}
		})
	}
}

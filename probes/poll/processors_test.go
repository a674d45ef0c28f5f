package poll

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/traces"
)

// The tightest quota counts, if it is less than the processors that the target may
// run on.
func TestProcessors(t *testing.T) {
	for name, tc := range map[string]struct {
		v2    bool
		files map[string]string
		want  traces.Cpu
	}{
		"quota": {true, map[string]string{
			"a/cpu.max": "max 100000", "a/b/cpu.max": "50000 100000",
			"a/b/cpu.stat": "usage_usec 1\nnr_periods 10\nnr_throttled 3\nthrottled_usec 70\n",
		}, traces.Cpu{Processors: 500, Path: "/a/b", Periods: 10, Throttled: 3, ThrottledNS: 70_000}},
		"above": {true, map[string]string{"a/cpu.max": "20000 100000", "a/b/cpu.max": "50000 100000"},
			traces.Cpu{Processors: 200, Path: "/a", Periods: -1, Throttled: -1, ThrottledNS: -1}},
		"more than there are": {true, map[string]string{"a/b/cpu.max": "99900000 100000"},
			traces.Cpu{Periods: -1, Throttled: -1, ThrottledNS: -1}},
		"none": {true, map[string]string{"a/b/cpu.max": "max 100000"}, traces.Cpu{Periods: -1, Throttled: -1, ThrottledNS: -1}},
		"version 1": {false, map[string]string{
			"a/b/cpu.cfs_quota_us": "25000", "a/b/cpu.cfs_period_us": "100000", "a/cpu.cfs_quota_us": "-1", "a/cpu.cfs_period_us": "100000",
			"a/b/cpu.stat": "nr_periods 4\nnr_throttled 2\nthrottled_time 900\n",
		}, traces.Cpu{Processors: 250, Path: "/a/b", Periods: 4, Throttled: 2, ThrottledNS: 900}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "a/b"), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(root, file), []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := processors{target: int32(os.Getpid()), groups: upwards("/a/b", "/", root, tc.v2)}
			row := p.read()
			if row.Allowed < 1 || row.Online < 1 || row.IdleNS <= 0 {
				t.Errorf("row %+v", row)
			}
			if tc.want.Processors == 0 {
				tc.want.Processors = 1000 * int64(row.Allowed)
			}
			row.Allowed, row.Online, row.IdleNS = 0, 0, 0
			if diff := cmp.Diff(tc.want, row); diff != "" {
				t.Error(diff)
			}
		})
	}
}

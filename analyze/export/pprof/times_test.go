package pprof_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
)

const ms = int64(1e6)

// The time of a played loop, by stage, and its labels.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		name string
		play Timed
		want map[string]int64 // by leaf, worker and pass; ms
	}{
		{"workers", Timed{Workers: 2, Batches: 4, Passes: 1, Fetch: EvenFetch(100 * ms), Collate: Even(10 * ms), Step: Even(200 * ms)}, map[string]int64{
			"__main__.Points (fetch: dataset and transforms) worker 0 pass 0": 200,
			"__main__.Points (fetch: dataset and transforms) worker 1 pass 0": 200,
			" (collate) worker 0 pass 0":                                      20,
			" (collate) worker 1 pass 0":                                      20,
			"step  pass 0":                                                    600,
			"start of the pass, until its first batch  pass 0":                110,
		}},
		{"a transform", Timed{Workers: 1, Batches: 4, Passes: 1, Fetch: EvenFetch(100 * ms), Crop: 0.75, Step: Even(200 * ms)}, map[string]int64{
			"__main__.Points (fetch: dataset and transforms) worker 0 pass 0": 100,
			"Crop (transform 1 of dataset.transform) worker 0 pass 0":         300,
			"step  pass 0": 600,
			"start of the pass, until its first batch  pass 0": 100,
		}},
		{"no workers", Timed{Batches: 4, Passes: 1, Fetch: EvenFetch(100 * ms), Collate: Even(10 * ms), Step: Even(200 * ms)}, map[string]int64{
			"waits: fetch  pass 0":   300,
			"waits: collate  pass 0": 30,
			"step  pass 0":           600,
			"start of the pass, until its first batch  pass 0": 110,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			run.Process(-1, 0).Time(c.play)
			run.Seal()
			p, err := profile.Parse(bytes.NewReader(write(t, run.Open(t))))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{}
			for _, s := range p.Sample {
				if s.Value[3] == 0 {
					continue
				}
				one := func(key string) string {
					if len(s.Label[key]) == 0 {
						return ""
					}
					return s.Label[key][0]
				}
				got[s.Location[0].Line[0].Function.Name+" "+one("worker")+" "+one("pass")] += (s.Value[3] + ms/2) / ms
				if one("loader") != "loader 1" || one("proof") != "hook" {
					t.Errorf("labels %v", s.Label)
				}
				if made := s.Location[len(s.Location)-2].Line[0]; made.Function.Name != "DataLoader at train.py:81" || made.Line != 81 {
					t.Errorf("made at %+v", made)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

package report

import (
	"testing"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

func TestWorkersOf(t *testing.T) {
	for _, c := range []struct {
		name    string
		workers []int32
		want    string
	}{
		{"one object", []int32{1}, "1 worker"},
		{"made anew in each epoch", []int32{4, 4, 4}, "4 workers"},
		{"with and without", []int32{2, 0, 2}, "0 and 2 workers"},
		{"tried out", []int32{0, 1, 2, 4, 8}, "0, 1, 2 and 2 more workers"},
		{"not known", []int32{-1}, "0 workers"},
	} {
		l := &timeline.Loader{}
		for _, n := range c.workers {
			l.Objects = append(l.Objects, traces.Loader{NumWorkers: n})
		}
		if got := workersOf(l); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

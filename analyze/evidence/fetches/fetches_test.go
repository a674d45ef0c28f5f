package fetches

import (
	"math"
	"testing"
	"time"

	"github.com/dptrace/dptrace/traces"
)

const ms = int64(time.Millisecond)

// TestSplit: what the parts of a fetch are, whatever the clocks say.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name                      string
		rows                      []traces.FetchSplit
		fetches                   int
		cpu, queue, blocked, wall int64 // ms
		queued, read              int   // fetches
	}{
		{"nothing", nil, 0, 0, 0, 0, 0, 0, 0},
		{"all three", []traces.FetchSplit{{WallNS: 10 * ms, CPUNS: 5 * ms, QueueNS: 2 * ms}}, 1, 5, 2, 3, 10, 1, 1},
		{"two", []traces.FetchSplit{{WallNS: 10 * ms, CPUNS: 10 * ms}, {WallNS: 10 * ms}}, 2, 10, 0, 10, 20, 2, 2},
		{"a clock that ran ahead", []traces.FetchSplit{{WallNS: 10 * ms, CPUNS: 11 * ms, QueueNS: 2 * ms}}, 1, 10, 0, 0, 10, 1, 1},
		{"a queue that began before", []traces.FetchSplit{{WallNS: 10 * ms, CPUNS: 5 * ms, QueueNS: 7 * ms}}, 1, 5, 5, 0, 10, 1, 1},
		{"the kernel does not say", []traces.FetchSplit{{WallNS: 10 * ms, CPUNS: 4 * ms, QueueNS: -1, ReadBytes: -1, Reads: -1, DiskBytes: -1}},
			1, 4, 0, 6, 10, 0, 0},
		{"with what looking took", []traces.FetchSplit{{WallNS: 12 * ms, CPUNS: 5 * ms, QueueNS: ms, OwnNS: 2 * ms}}, 1, 3, 1, 6, 10, 1, 1},
		{"no time but that", []traces.FetchSplit{{WallNS: 2 * ms, CPUNS: ms, OwnNS: 2 * ms}}, 0, 0, 0, 0, 0, 0, 0},
		{"no time at all", []traces.FetchSplit{{WallNS: 0, CPUNS: 4 * ms}, {WallNS: -5}}, 0, 0, 0, 0, 0, 0, 0},
	} {
		var s Split
		for i := range c.rows {
			s.add(&c.rows[i], nil)
		}
		got := []int64{s.OnCPU.Milliseconds(), s.Queue.Milliseconds(), s.Blocked.Milliseconds(), s.Wall.Milliseconds()}
		if s.Fetches != c.fetches || s.QueueKnown != c.queued || s.ReadKnown != c.read ||
			got[0] != c.cpu || got[1] != c.queue || got[2] != c.blocked || got[3] != c.wall || s.OnCPU+s.Queue+s.Blocked != s.Wall {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

// TestDeviation is of the fetches, however they were added up.
func TestDeviation(t *testing.T) {
	var all, one, two Split
	for i, cpu := range []int64{10, 8, 6, 4} {
		r := &traces.FetchSplit{WallNS: 10 * ms, CPUNS: cpu * ms}
		all.add(r, nil)
		[]*Split{&one, &two}[i%2].add(r, nil)
	}
	one.merge(&two)
	want := math.Sqrt((9 + 1 + 1 + 9) / 3.0 / 100) // of 0, .2, .4, .6
	for _, s := range []*Split{&all, &one} {
		if math.Abs(s.Deviation()-want) > 1e-9 || s.Share(s.Blocked) != 0.3 || s.Fetches != 4 {
			t.Errorf("deviation %v, want %v: %+v", s.Deviation(), want, s)
		}
	}
	if (&Split{Fetches: 1}).Deviation() != 0 || (&Split{}).Share(1) != 0 {
		t.Error("of one fetch, or none, something is said")
	}
}

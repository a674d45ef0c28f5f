package perfetto

import (
	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/traces"
)

// clock puts the times of all parts on the monotonic clock of the first.
type clock struct {
	base  *traces.Part
	shift map[*traces.Part]int64
	begin int64 // of the run

	last  *traces.Part // that was asked for, and its shift
	ahead int64
}

func newClock(r *analyze.Result) clock {
	c := clock{shift: map[*traces.Part]int64{}, begin: r.Timeline.Begin}
	for _, p := range r.Run.Parts {
		if c.base == nil {
			c.base = p
		}
		c.shift[p] = p.Ahead(c.base)
	}
	return c
}

// of is a time of a part; never before 1, which Perfetto takes for a time.
func (c *clock) of(p *traces.Part, ts int64) int64 {
	if p != c.last {
		c.last, c.ahead = p, c.shift[p]
	}
	return max(ts+c.ahead, 1)
}

// snapshot says what time it was, as far as that is known.
func (c *clock) snapshot(p *packets) {
	now := max(c.begin, 1)
	times := map[uint64]int64{monotonic: now, boottime: now}
	if wall := c.base.Wall(now); wall > 0 {
		times[realtime] = wall
	}
	p.snapshot(times)
}
